// Roblox's API for the checker: the definition file, and what no definition file can say.
#pragma once

#include "Luau/Frontend.h"

#include <string>
#include <vector>

// Loads `definitions` as globals and freezes them. Gives the problems; there are none if all is well.
std::vector<std::string> loadRoblox(Luau::Frontend& frontend, const std::string& definitions);
