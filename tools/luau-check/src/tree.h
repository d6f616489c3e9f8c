// The modules of one folder, laid out as Rojo does, and how `require` finds them.
#pragma once

#include "Luau/FileResolver.h"

#include <filesystem>
#include <map>
#include <string>

// A module's name is its instance's path: `plugin/src/Sync/Diff` for `plugin/src/Sync/Diff.luau`,
// and `plugin/src` for `plugin/src/init.server.luau`.
class Tree : public Luau::FileResolver
{
public:
    struct File
    {
        std::filesystem::path path;
        Luau::SourceCode::Type type;
    };

    // Adds all modules below `folder`, which becomes the name of the topmost one.
    void add(const std::filesystem::path& folder);

    const std::map<Luau::ModuleName, File>& files() const
    {
        return modules;
    }

    std::optional<Luau::SourceCode> readSource(const Luau::ModuleName& name) override;

    std::optional<Luau::ModuleInfo> resolveModule(
        const Luau::ModuleInfo* context,
        Luau::AstExpr* expression,
        const Luau::TypeCheckLimits& limits
    ) override;

    std::string getHumanReadableModuleName(const Luau::ModuleName& name) const override;

private:
    void walk(const std::filesystem::path& folder, const Luau::ModuleName& name);

    std::map<Luau::ModuleName, File> modules;
};

std::string readFile(const std::filesystem::path& path);
