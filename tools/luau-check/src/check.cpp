// luau-check DEFINITIONS FOLDER...: type-checks every module below the folders, in strict mode
// unless a file says otherwise. Exit code: 0 no finding, 1 findings, 2 it could not check.
#include "roblox.h"
#include "tree.h"

#include "Luau/Common.h"
#include "Luau/ConfigResolver.h"
#include "Luau/Error.h"
#include "Luau/ExperimentalFlags.h"
#include "Luau/Frontend.h"

#include <algorithm>
#include <cstring>
#include <iostream>

LUAU_FASTINT(LuauTarjanChildLimit)

using namespace Luau;

namespace
{

struct Strict : ConfigResolver
{
    Strict()
    {
        config.mode = Mode::Strict;
    }

    const Config& getConfig(const ModuleName&, const TypeCheckLimits&) const override
    {
        return config;
    }

    Config config;
};

// Luau ships what is finished but new behind flags; its own command line tools turn them on.
void enableFlags()
{
    for (FValue<bool>* flag = FValue<bool>::list; flag; flag = flag->next)
        if (strncmp(flag->name, "Luau", 4) == 0 && !isAnalysisFlagExperimental(flag->name))
            flag->value = true;

    // Roblox's classes refer to each other: one graph, larger than any program's own.
    FInt::LuauTarjanChildLimit.value = 0;
}

void report(const std::string& file, const Location& location, const std::string& text)
{
    std::cout << file << ":" << location.begin.line + 1 << ":" << location.begin.column + 1 << ": " << text << "\n";
}

size_t check(Frontend& frontend, const Tree& tree)
{
    size_t findings = 0;
    for (const auto& [name, file] : tree.files())
    {
        CheckResult result = frontend.check(name);
        std::stable_sort(
            result.errors.begin(),
            result.errors.end(),
            [](const TypeError& left, const TypeError& right) { return left.location.begin < right.location.begin; }
        );
        for (const TypeError& error : result.errors)
        {
            // Those of the modules that it requires come with each of them.
            if (error.moduleName != name)
                continue;
            report(file.path.generic_string(), error.location, toString(error, TypeErrorToStringOptions{frontend.fileResolver}));
            findings++;
        }
    }
    return findings;
}

} // namespace

extern "C" int luau_check(int argc, char** argv)
{
    if (argc < 3)
    {
        std::cerr << "usage: luau-check DEFINITIONS FOLDER...\n";
        return 2;
    }

    for (int index = 1; index < argc; index++)
    {
        if (!std::filesystem::exists(argv[index]))
        {
            std::cerr << argv[index] << ": there is no such file or folder\n";
            return 2;
        }
    }

    enableFlags();
    Tree tree;
    for (int index = 2; index < argc; index++)
        tree.add(argv[index]);
    if (tree.files().empty())
    {
        std::cerr << "there is no module to check\n";
        return 2;
    }

    Strict strict;
    Frontend frontend(&tree, &strict);
    frontend.setLuauSolverMode(SolverMode::New);

    std::vector<std::string> problems = loadRoblox(frontend, readFile(argv[1]));
    for (const std::string& problem : problems)
        std::cerr << argv[1] << ":" << problem << "\n";
    if (!problems.empty())
        return 2;

    size_t findings = check(frontend, tree);
    std::cout << tree.files().size() << " modules, " << findings << " findings\n";
    return findings == 0 ? 0 : 1;
}
