#include "tree.h"

#include "Luau/Ast.h"

#include <fstream>
#include <sstream>

using namespace Luau;

namespace
{

// Cuts `ending` off `text`; false if it does not end so.
bool cut(std::string& text, const std::string& ending)
{
    if (text.size() < ending.size() || text.compare(text.size() - ending.size(), ending.size(), ending) != 0)
        return false;
    text.resize(text.size() - ending.size());
    return true;
}

std::optional<ModuleInfo> parentOf(const ModuleName& name)
{
    size_t slash = name.rfind('/');
    if (slash == ModuleName::npos)
        return std::nullopt;
    return ModuleInfo{name.substr(0, slash)};
}

std::optional<ModuleInfo> ancestorOf(const ModuleName& name, const std::string& wanted)
{
    std::optional<ModuleInfo> ancestor = parentOf(name);
    while (ancestor && ancestor->name.substr(ancestor->name.rfind('/') + 1) != wanted)
        ancestor = parentOf(ancestor->name);
    return ancestor;
}

// `a:WaitForChild("Name")` and its like.
std::optional<ModuleInfo> resolveCall(const ModuleName& name, const AstExprCall& call)
{
    auto function = call.func->as<AstExprIndexName>();
    if (!call.self || !function || call.args.size == 0)
        return std::nullopt;
    auto constant = call.args.data[0]->as<AstExprConstantString>();
    if (!constant)
        return std::nullopt;

    std::string argument(constant->value.data, constant->value.size);
    if (function->index == "WaitForChild" || function->index == "FindFirstChild")
        return ModuleInfo{name + "/" + argument};
    if (function->index == "FindFirstAncestor")
        return ancestorOf(name, argument);
    return std::nullopt;
}

} // namespace

std::string readFile(const std::filesystem::path& path)
{
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

void Tree::add(const std::filesystem::path& folder)
{
    walk(folder, folder.generic_string());
}

void Tree::walk(const std::filesystem::path& folder, const ModuleName& name)
{
    for (const auto& entry : std::filesystem::directory_iterator(folder))
    {
        std::string child = entry.path().filename().string();
        if (entry.is_directory())
            walk(entry.path(), name + "/" + child);
        else if (cut(child, ".luau"))
        {
            bool isScript = cut(child, ".server") || cut(child, ".client");
            modules[child == "init" ? name : name + "/" + child] = File{entry.path(), isScript ? SourceCode::Script : SourceCode::Module};
        }
    }
}

std::optional<SourceCode> Tree::readSource(const ModuleName& name)
{
    auto file = modules.find(name);
    if (file == modules.end())
        return std::nullopt;
    return SourceCode{readFile(file->second.path), file->second.type};
}

// Called for each step of a path, from `script` outwards; `context` is what the step starts from.
std::optional<ModuleInfo> Tree::resolveModule(const ModuleInfo* context, AstExpr* expression, const TypeCheckLimits&)
{
    if (!context)
        return std::nullopt;
    if (auto global = expression->as<AstExprGlobal>())
        return global->name == "script" ? std::optional(ModuleInfo{context->name}) : std::nullopt;
    if (auto index = expression->as<AstExprIndexName>())
        return index->index == "Parent" ? parentOf(context->name) : ModuleInfo{context->name + "/" + index->index.value};
    if (auto index = expression->as<AstExprIndexExpr>())
    {
        if (auto key = index->index->as<AstExprConstantString>())
            return ModuleInfo{context->name + "/" + std::string(key->value.data, key->value.size)};
        return std::nullopt;
    }
    if (auto call = expression->as<AstExprCall>())
        return resolveCall(context->name, *call);
    return std::nullopt;
}

std::string Tree::getHumanReadableModuleName(const ModuleName& name) const
{
    auto file = modules.find(name);
    return file == modules.end() ? name : file->second.path.generic_string();
}
