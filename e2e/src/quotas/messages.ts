/** Messages between the pods and their parent. */
import type { QuotaName } from './vendors.js'

/** `preset`: by the vendor's rules. `plain`: by the tokens that responses report. */
export type Accounting = 'preset' | 'plain'

export interface Run {
  /** Also the name of the guard. */
  readonly name: string
  readonly quota: QuotaName
  readonly accounting: Accounting
  readonly url: string
  readonly windowMs: number
  readonly models: readonly string[]
  /** Agents of each model, in each pod. */
  readonly agents: number
  readonly seed: number
}

export type ToPod = { readonly start: Run } | { readonly stop: string }
export type FromPod = 'ready' | { readonly stopped: string }
