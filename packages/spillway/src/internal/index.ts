/**
 * Exports for the other packages of Spillway. Unstable: names may change in every release, so applications must not
 * import them.
 */
export { type CallerSignal, LeaveSignal } from '../core/abort.js'
export { ArrivalLog } from '../core/collections/arrival-log.js'
export { BoundedCache } from '../core/collections/bounded-cache.js'
export { type Durations, SECONDS } from '../core/collections/histogram.js'
export { remembered } from '../core/collections/remembered.js'
export type { SpillwayErrorInit } from '../core/errors.js'
export { emit } from '../core/events.js'
export {
  ERROR_KINDS,
  type ErrorKind,
  failureOf,
  noteFailure,
  type VendorFailure,
} from '../core/failures/error-kind.js'
export { hopHeadersFor, hopNames, leastReserveMs } from '../core/hops.js'
export { omitUndefined } from '../core/options/omit-undefined.js'
export { PRIORITIES } from '../core/options/priority.js'
export { documentationUrl } from '../core/project.js'
export { createRandom, type Random } from '../core/random.js'
export { type RetryAdvice, refusalHeaders } from '../core/refusal-answer.js'
export { systemClock, type Timer } from '../core/time/clock.js'
export { VERSION } from '../core/version.js'
export { DecisionLog } from '../guard/decisions/decision-log.js'
export type { DecisionRecord, PathNote } from '../guard/decisions/decision-record.js'
export type { DecisionRecorder, LaneFlow } from '../guard/decisions/decision-recorder.js'
export { REPLACES, type ReplacedCall } from '../guard/decisions/replaced-call.js'
export {
  createKeyQuarantine,
  keyStatesOf,
  noteQuarantined,
} from '../guard/fleet/key-quarantine-of.js'
export { ownStatus, worstOf, worstStore } from '../guard/fleet/own-status.js'
export { packCommand } from '../guard/fleet/pod-commands.js'
export { type GuardStatus, type PodStatus, readPodStatus } from '../guard/fleet/pod-status.js'
export {
  nameLanes,
  noteFallback,
  pressureOf,
  type SharedGuard,
  withoutNestedCalls,
} from '../guard/guard.js'
export { internalsOf, type SpillwayInternals } from '../guard/internals.js'
export { anthropicFormat } from '../guard/llm/anthropic-format.js'

export { azureFormat } from '../guard/llm/azure-format.js'
export { type ErrorTable, kindOfStatus, readFailure } from '../guard/llm/errors/error-table.js'
export { CachedPrefixes } from '../guard/llm/estimate/cached-prefixes.js'
export {
  ESTIMATE_NAMES,
  type EstimateName,
  type Estimates,
  FIXED_ESTIMATES,
  LaneEstimates,
} from '../guard/llm/estimate/lane-estimates.js'
export { sampleText } from '../guard/llm/estimate/prefix-hash.js'
export {
  NO_PROMPT,
  type Prompt,
  PromptEstimate,
  sizeOf,
  type TextSampler,
  tokensOf,
} from '../guard/llm/estimate/prompt-estimate.js'
export { geminiFormat } from '../guard/llm/gemini-format.js'

export { genAiOperationOf, genAiProviderOf } from '../guard/llm/gen-ai.js'
export { openaiFormat } from '../guard/llm/openai-format.js'
export { type QuotaName, type QuotaSetting, quotaOf } from '../guard/llm/quota-model.js'
export { nameOr, quotaFields } from '../guard/llm/quota-options.js'
export { Reservations } from '../guard/llm/reservation.js'
export { SseFrames } from '../guard/llm/sse-frames.js'
export type { TokenUsage } from '../guard/llm/usage/token-usage.js'
export { anyUsage, type UsageFormat } from '../guard/llm/usage/usage-format.js'
export { UsageReader } from '../guard/llm/usage/usage-reader.js'
export type {
  BodyKind,
  LlmProtocol,
  RequestAddress,
  RequestFacts,
  VendorFormat,
} from '../guard/llm/vendor-format.js'
export type { CheckedGuard } from '../guard/options.js'
export type { GuardTimings } from '../guard/pipeline/counters.js'
export {
  rowsOf,
  type ShadowStage,
  STAGES,
  type StageRow,
  withCustomStages,
} from '../guard/pipeline/stages.js'
export type { UserStanding } from '../guard/run-options.js'
export { isOn } from '../guard/snapshot.js'
export { reasonOfRefusal } from '../guard/stages/fallback.js'
export type { BodyEnd } from '../guard/stream/body-watch.js'
export {
  type BodyOwner,
  type BodySigns,
  RELAYED,
  type Relayed,
} from '../guard/stream/relayed.js'
export { accessFields, checkToken, RENAMED_ACCESS } from '../http/operator-access.js'
export { readProcess } from '../local/pod-metrics/process-gauge.js'
export { Steady } from '../local/pod-metrics/steady.js'
export { configuredLimits } from '../operate/operated-guard.js'
export { operatorOf } from '../operate/operator.js'
export { tripCause } from '../shared/circuit-breaker/lane/trip-cause.js'
export { toSpec } from '../shared/circuit-breaker/options.js'
export { type KeyId, keyIdOf } from '../shared/key-quarantine/key-id.js'
export type {
  KeyAnswer,
  KeyPermit,
  KeyQuarantine,
  KeyState,
} from '../shared/key-quarantine/key-quarantine.js'
export { ALL_LANES, DEFAULT_LANE, overflowLane } from '../shared/lanes/lane-names.js'
export { NamePattern } from '../shared/lanes/name-pattern.js'
export { listMembers } from '../shared/membership.js'
export { createPodId } from '../shared/pod-id.js'
export { limitLabel } from '../shared/rate-limiter/options.js'
export type { Cost } from '../shared/rate-limiter/permit.js'
export { readTimeZone } from '../shared/rate-limiter/settings/time-zone.js'
