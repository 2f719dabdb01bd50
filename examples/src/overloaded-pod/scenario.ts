/** Parameters of the example: the vendor, the clients and the phases of the load. */

export const VENDOR = {
  /** Calls it works on side by side at full speed. */
  servers: 20,
  /** Work in one call, on average. */
  workMs: 100,
}

/** Answers per second that the vendor can give. */
export const CAPACITY = (VENDOR.servers * 1_000) / VENDOR.workMs

/** A client disconnects if it has no answer after this time. */
export const PATIENCE_MS = 1_000

export interface Phase {
  name: string
  /** When it begins and ends, from the start of the act. */
  startMs: number
  endMs: number
  /** Requests per second. */
  offered: number
}

const BEFORE: Phase = { name: 'calm', startMs: 0, endMs: 2_000, offered: 0.5 * CAPACITY }
const OVERLOAD: Phase = { name: 'overload', startMs: 2_000, endMs: 6_000, offered: 4 * CAPACITY }
const AFTER: Phase = { name: 'calm again', startMs: 6_000, endMs: 11_000, offered: 0.5 * CAPACITY }

export const PHASES = { before: BEFORE, overload: OVERLOAD, after: AFTER }

/** How long clients keep coming, in one act. */
export const ACT_MS = AFTER.endMs

/** The phase at this time; undefined after the last client. */
export function phaseAt(atMs: number): Phase | undefined {
  return Object.values(PHASES).find(({ endMs }) => atMs < endMs)
}
