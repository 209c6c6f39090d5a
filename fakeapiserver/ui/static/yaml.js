// An object as lines of YAML, each with its path and the ids of the managers that own it; and these lines drawn.

import { fieldOwners, idsOf, rootSets, setsOfField, setsOfItem } from "./fields.js";
import { h } from "./dom.js";
import { formatTime } from "./told.js";
