import { chart } from "./chart.js";

chart();
