// A small sample: four texts and a PDF about a product that does not exist, and questions for them.
import { ask, call, open, pause } from "./api.js";
import { unique } from "./dom.js";
import { scope } from "./state.js";

export const QUESTIONS = [
  "How often must the air filter be cleaned?",
  "What does error E4 mean?",
  "How long is the warranty on the battery cells?",
];

const TEXTS = [
  ["Brightwell B2: product sheet", `# Brightwell B2 home battery

The Brightwell B2 stores 9.6 kWh of electric energy for a house. It weighs 98 kg and is 61 cm wide.

## Performance

The continuous output is 4.6 kW. For ten seconds it gives 7 kW, enough to start a heat pump. The round-trip efficiency is 92 percent.

## Maker

Brightwell Energy was founded by Marta Lindqvist in Malmo. The cells are made by Norrland Cells. Brightwell Energy works with Fjord Electric.
`],
  ["Brightwell B2: installation", `# Installing the Brightwell B2

The battery is mounted on a wall that carries at least 250 kg. Leave 30 cm free on both sides and 50 cm above.

The room must stay between 5 and 35 degrees Celsius. Bathrooms and bedrooms are not allowed.

Only an electrician with a certificate of Brightwell may connect the battery. The connection needs a 32 A circuit breaker of type B.
`],
  ["Brightwell B2: error codes", `# Error codes

- E1: the grid is missing. The battery supplies the house by itself until the grid is back.
- E2: the temperature is too low. Charging stops below 0 degrees Celsius.
- E3: the fan is blocked. Clean the air filter and start the battery again.
- E4 means that a cell reports an uneven voltage. Do not open the battery; call the service.
- E5: the meter does not answer. Check the cable between the meter and the battery.
`],
  ["Brightwell B2: warranty", `# Warranty

The warranty on the battery cells is ten years or 6,000 full cycles, whichever comes first. Within that time they keep at least 70 percent of their capacity.

The warranty on the electronics is five years. It ends if the battery was connected by somebody without a certificate.

A claim is sent to service@brightwell.example with the serial number and a photograph of the display.
`],
];

/** The id of the PDF. */
const LEAFLET = "sample-brightwell-care";

/**
 * Loads the sample and waits until it is searchable.
 * @param {(text: string) => void} tell
 * @param {AbortSignal} signal
 */
export async function loadSample(tell, signal) {
  tell("Sending five documents…");
  const items = TEXTS.map(([title, content], i) => ({ content, file_id: `sample-brightwell-${i + 1}`, document_metadata: { title, sample: true } }));
  const ids = [...items.map((item) => item.file_id), LEAFLET];
  const form = new FormData();
  for (const [name, value] of Object.entries({ ...scope(), file_id: LEAFLET })) form.append(name, value);
  form.append("file", await (await open("GET", new URL("./sample.pdf", import.meta.url).href, { signal })).blob(), "Brightwell B2 care.pdf");
  await Promise.all([call("POST", "upload/upload_document", { form, once: unique(), signal }),
    call("POST", "upload/batch_upload_text", { query: scope(), json: { items }, once: unique(), signal })]);
  for (;;) {
    const { sources } = await ask("list/sources_by_id", { ...scope(), source_ids: ids }, signal);
    const done = sources.filter((/** @type {any} */ source) => source.status === "success").length;
    const failed = sources.find((/** @type {any} */ source) => source.status === "errored");
    if (failed) throw new Error("A sample document failed: see Jobs.");
    tell(`${done} of ${ids.length} are searchable…`);
    if (done === ids.length) return tell("The sample is ready.");
    await pause(300, signal);
  }
}
