/**
 * Messages between the dashboard's page and its server. Types only: both compile against the same
 * files.
 *
 * `GET events` is a stream of server-sent events. The name of each is a key of `Messages`, its data
 * the value as JSON. The first is always `hello`. Every event has an opaque id. A reader that
 * reconnects to the same process with `Last-Event-ID` gets what it missed, if that is still known,
 * and in any case `hello` and the current state. A reader that is too slow loses ticks and
 * decisions, but never the current state.
 *
 * Callers may have chosen names (guards, lanes, users, pods, queues, tenants): text, at most
 * `MostText` characters, never markup. Points in time are milliseconds of `Date.now()` and end in
 * `At`; durations end in `Ms`. No message contains a secret, a key, or a part of a body.
 */
import type { ActNote } from './acts.js'
import type { Decisions } from './decisions.js'
import type { Fleet } from './fleet.js'
import type { GuardsTick, Transition } from './guards.js'
import type { DemoState, Hello } from './hello.js'
import type { History } from './history.js'
import type { QueuesTick } from './queues.js'

export interface Messages {
  /** First, and again whenever a guard is added or removed. */
  hello: Hello
  /** After `hello`: one message for the pod, two for each guard. */
  history: History
  /** Once a second. */
  fleet: Fleet
  /** Once a second: this pod's guards, with the shared state that they use. */
  guards: GuardsTick
  /** Up to ten times a second, if there are any. */
  decisions: Decisions
  /** At once, whichever pod caused it. Also in the next `guards`, as part of the timeline. */
  transition: Transition
  /** Once a second, if there are queues. */
  jobQueues: QueuesTick
  /** At once: an operator has acted, or tried to, on this pod or, if known, another. */
  act: ActNote
  /** The built-in load or the broken vendor was switched, by any reader. Only with `hello.demo`. */
  demo: DemoState
}
