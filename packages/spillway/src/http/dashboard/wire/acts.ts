/** What an operator may ask for, and what is told of it. */

/**
 * `POST act`, JSON. Answered with 200 and `{ "ok": true, "did": "…" }`; or 400 (a mistake), 401 (no token, or not
 * the right one), 403 (not from here), 404 (no such guard, pod, queue), 409 (not possible as things are), 503 (the
 * store is away), each with `{ "ok": false, "problem": "…" }`. Asking is all: whether somebody is sure is the page's
 * question.
 */
export type Act =
  | { act: 'isolate'; guard: string; lane?: string; forMs: number; why?: string }
  /** Ends an operator's isolation. */
  | { act: 'release'; guard: string; lane?: string; why?: string }
  /** Closes it, and forgets what was counted. */
  | { act: 'reset'; guard: string; lane?: string; why?: string }
  | { act: 'pause'; guard: string; lane?: string; forMs: number; why?: string }
  /** Another limit for a while. */
  | { act: 'limit'; guard: string; id: string; limit: number; forMs: number; why?: string }
  | { act: 'drain'; pod: string; why?: string }
  /** Dead letters go back: one, or all. */
  | { act: 'replay'; queue: string; id?: string; why?: string }
  | { act: 'demo'; load?: boolean; broken?: boolean }

export type ActAnswer = { ok: true; did: string } | { ok: false; problem: string }

/** One line of the audit. */
export interface ActNote {
  at: number
  /** The pod that was asked. */
  pod: string
  act: Act['act']
  /** What it was done to: a guard and its lane, a pod, a queue. */
  on: string
  did: string
  ok: boolean
  /** Where it came from; never the token. */
  by: string
}
