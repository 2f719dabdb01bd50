/** The gateway has retried; it refuses; the vendor fails and the gateway does not retry. */
export const FAILURES = {
  'vendor error after retries of the gateway': { model: 'retried', knobs: { status: 503 } },
  'vendor error without retries of the gateway': { model: 'suite-model', knobs: { status: 503 } },
  'refused by the user limit': { model: 'refusing', knobs: {}, spent: 2 },
}
