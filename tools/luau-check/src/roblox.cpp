#include "roblox.h"

#include "Luau/BuiltinDefinitions.h"
#include "Luau/ConstraintSolver.h"
#include "Luau/Error.h"
#include "Luau/TypeArena.h"
#include "Luau/TypePack.h"

using namespace Luau;

namespace
{

std::optional<std::string> constantArgument(const AstExprCall& call)
{
    if (call.args.size == 0)
        return std::nullopt;
    auto constant = call.args.data[0]->as<AstExprConstantString>();
    if (!constant)
        return std::nullopt;
    return std::string(constant->value.data, constant->value.size);
}

// The class of that name; nothing for other types.
std::optional<TypeId> classNamed(const Scope& scope, const std::string& name)
{
    const Scope* outermost = &scope;
    while (outermost->parent)
        outermost = outermost->parent.get();
    auto found = outermost->exportedTypeBindings.find(name);
    if (found == outermost->exportedTypeBindings.end() || !get<ExternType>(follow(found->second.type)))
        return std::nullopt;
    return found->second.type;
}

struct NewSolverOnly : MagicFunction
{
    std::optional<WithPredicate<TypePackId>> handleOldSolver(
        TypeChecker&,
        const ScopePtr&,
        const AstExprCall&,
        WithPredicate<TypePackId>
    ) override
    {
        return std::nullopt;
    }

    bool infer(const MagicFunctionCallContext&) override
    {
        return false;
    }
};

// A function whose first argument names the class of its result.
struct GivesNamedClass final : NewSolverOnly
{
    explicit GivesNamedClass(bool isOptional)
        : isOptional(isOptional)
    {
    }

    bool infer(const MagicFunctionCallContext& context) override
    {
        std::optional<std::string> name = constantArgument(*context.callSite);
        if (!name)
            return false;

        std::optional<TypeId> type = classNamed(*context.constraint->scope, *name);
        if (!type)
        {
            context.solver->reportError(GenericError{"There is no class '" + *name + "'"}, context.callSite->args.data[0]->location);
            return false;
        }

        TypeArena* arena = context.solver->arena;
        if (isOptional)
            type = arena->addType(UnionType{{*type, context.solver->builtinTypes->nilType}});
        asMutable(context.result)->ty.emplace<BoundTypePack>(arena->addTypePack({*type}));
        return true;
    }

    bool isOptional;
};

// `part:Clone()` is what `part` is.
struct GivesSelf final : NewSolverOnly
{
    bool infer(const MagicFunctionCallContext& context) override
    {
        const auto& [arguments, _] = flatten(context.arguments);
        if (!context.callSite->self || arguments.empty())
            return false;
        asMutable(context.result)->ty.emplace<BoundTypePack>(context.solver->arena->addTypePack({arguments[0]}));
        return true;
    }
};

// `if instance:IsA("Part") then`: there `instance` is a Part.
struct NarrowsToNamedClass final : NewSolverOnly
{
    void refine(const MagicRefinementContext& context) override
    {
        std::optional<std::string> name = constantArgument(*context.callSite);
        std::optional<TypeId> type = name ? classNamed(*context.scope, *name) : std::nullopt;
        if (!type || context.discriminantTypes.empty() || !context.discriminantTypes[0])
            return;
        TypeId self = *context.discriminantTypes[0];
        if (get<BlockedType>(self))
            asMutable(self)->ty.emplace<BoundType>(*type);
    }
};

void attachToMethod(const Scope& globals, const std::string& type, const std::string& method, std::shared_ptr<MagicFunction> magic)
{
    std::optional<TypeId> found = classNamed(globals, type);
    ExternType* classType = found ? getMutable<ExternType>(follow(*found)) : nullptr;
    LUAU_ASSERT(classType && classType->props.count(method));
    attachMagicFunction(*classType->props[method].readTy, std::move(magic));
}

void attachMagic(const GlobalTypes& globals)
{
    Scope& scope = *globals.globalScope;
    auto named = std::make_shared<GivesNamedClass>(false);
    auto namedOrNil = std::make_shared<GivesNamedClass>(true);

    attachToMethod(scope, "ServiceProvider", "GetService", named);
    attachToMethod(scope, "ServiceProvider", "FindService", namedOrNil);
    for (const char* method :
         {"FindFirstChildOfClass", "FindFirstChildWhichIsA", "FindFirstAncestorOfClass", "FindFirstAncestorWhichIsA"})
        attachToMethod(scope, "Instance", method, namedOrNil);
    attachToMethod(scope, "Instance", "Clone", std::make_shared<GivesSelf>());
    attachToMethod(scope, "Object", "IsA", std::make_shared<NarrowsToNamedClass>());

    std::optional<Binding> instance = scope.linearSearchForBinding("Instance");
    TableType* table = instance ? getMutable<TableType>(follow(instance->typeId)) : nullptr;
    LUAU_ASSERT(table && table->props.count("new"));
    attachMagicFunction(*table->props["new"].readTy, named);
}

// Roblox writes the type of an enum's items as `Enum.Material`, the definitions as `EnumMaterial`.
void importEnums(Scope& scope)
{
    const std::string prefix = "Enum";
    for (const auto& [name, type] : scope.exportedTypeBindings)
        if (name.size() > prefix.size() && name.compare(0, prefix.size(), prefix) == 0 && name != "EnumItem" && name != "Enums")
            scope.importedTypeBindings[prefix][name.substr(prefix.size())] = type;
}

} // namespace

std::vector<std::string> loadRoblox(Frontend& frontend, const std::string& definitions)
{
    GlobalTypes& globals = frontend.globals;
    registerBuiltinGlobals(frontend, globals);
    LoadDefinitionFileResult loaded = frontend.loadDefinitionFile(globals, globals.globalScope, definitions, "@roblox", false);

    std::vector<std::string> problems;
    for (const ParseError& error : loaded.parseResult.errors)
        problems.push_back(std::to_string(error.getLocation().begin.line + 1) + ": " + error.getMessage());
    if (loaded.module)
        for (const TypeError& error : loaded.module->errors)
            problems.push_back(std::to_string(error.location.begin.line + 1) + ": " + toString(error));
    if (!loaded.success)
        return problems;

    attachMagic(globals);
    importEnums(*globals.globalScope);
    freeze(globals.globalTypes);
    return {};
}
