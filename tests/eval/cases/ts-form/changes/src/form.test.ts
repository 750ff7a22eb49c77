import { load } from "./form";

// An old draft has no time.
load();
