const { chart } = await import("./chart.js");

chart();
