/** State of a learned limit. See learned-limit.ts. */
export interface LearnedLimit {
  /** The limit in force, unless less is configured. */
  limit: number
  /** Units that the vendor accepted in a window: before the last refusals, or under the limit before the last raise. */
  accepted: number
  /** Units that the vendor had accepted before those refusals; 0 if unknown. */
  before: number
  /** The limit that was in force before the last refusals. */
  from: number
  /** When it was last lowered. Refusals of permits granted before then belong together. */
  loweredUs: number
  /** When it was last lowered or raised. */
  steppedUs: number
  /** How often it was raised since it was lowered. */
  steps: number
  /** The cost of a call that had to wait for it since then; 0: none. Only a limit in full use is raised. */
  missing: number
  /** When that call had to wait. */
  fullUs: number
  /** Version of the limits. Learning begins again when an operator changes them. */
  version: number
}
