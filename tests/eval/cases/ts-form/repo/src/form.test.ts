import { load } from "./form";

load();
