/** Operator actions and their audit entries. */

/**
 * `POST act`, JSON. Answered with 200 and `{ "ok": true, "did": "…" }`; or 400 (invalid), 401 (no
 * token, or a wrong one), 403 (not from here), 404 (no such guard, pod, queue), 409 (impossible in
 * the current state), 503 (the store is unreachable), each with `{ "ok": false, "problem": "…" }`.
 * Confirmation is up to the page.
 */
export type Act =
  | { act: 'isolate'; guard: string; lane?: string; forMs: number; why?: string }
  /** Ends an operator's isolation. */
  | { act: 'release'; guard: string; lane?: string; why?: string }
  /** Closes it and resets its counts. */
  | { act: 'reset'; guard: string; lane?: string; why?: string }
  | { act: 'pause'; guard: string; lane?: string; forMs: number; why?: string }
  /** Changes a limit for a while. */
  | { act: 'limit'; guard: string; id: string; limit: number; forMs: number; why?: string }
  /** Ends every quarantine of an API key. */
  | { act: 'release-key'; guard: string; key: string; why?: string }
  | { act: 'drain'; pod: string; why?: string }
  /** Replays dead letters: one, or all. */
  | { act: 'replay'; queue: string; id?: string; why?: string }
  | { act: 'demo'; load?: boolean; broken?: boolean }

export type ActAnswer = { ok: true; did: string } | { ok: false; problem: string }

/** One line of the audit. */
export interface ActNote {
  at: number
  /** The pod that performed it. */
  pod: string
  act: Act['act']
  /** The object: a guard and its lane, a pod, a queue. */
  on: string
  did: string
  ok: boolean
  /** Where it came from; never the token. */
  by: string
}
