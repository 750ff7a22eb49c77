export function chart() {
  console.log("chart");
}
