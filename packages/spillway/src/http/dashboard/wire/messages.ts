/**
 * What the dashboard's page is told, and what it may ask for. Types only: the page and its server compile
 * against the same files.
 *
 * `GET events` is a stream of server-sent events. The name of each is a key of `Messages`, its data the value
 * as JSON. The first is always `hello`. Every event has an id, of no meaning to a page: a reader that comes back
 * with `Last-Event-ID` of the same process gets what it missed, if that is still known, and in any case `hello` and all
 * that stands now. A reader that is too slow loses ticks and decisions, never the last word on how things stand.
 *
 * Names (guards, lanes, users, pods, queues, tenants) are data that anybody may have chosen: text, at most
 * `MostText` characters, never markup. Points in time are milliseconds of the day's clock (`Date.now()`) and
 * end in `At`; durations end in `Ms`. Nothing here is a secret, a key, or a part of a body.
 */
import type { ActNote } from './acts.js'
import type { Decisions } from './decisions.js'
import type { Fleet } from './fleet.js'
import type { GuardsTick, Transition } from './guards.js'
import type { DemoState, Hello } from './hello.js'
import type { History } from './history.js'
import type { QueuesTick } from './queues.js'

export interface Messages {
  /** First, and again whenever a guard comes or goes. */
  hello: Hello
  /** After `hello`: one message for the pod, two for each guard. */
  history: History
  /** Once a second. */
  fleet: Fleet
  /** Once a second: this pod's guards, with the shared state that they go by. */
  guards: GuardsTick
  /** Up to ten times a second, if there are any. */
  decisions: Decisions
  /** At once, whichever pod caused it. Also in the next `guards`, as part of the timeline. */
  transition: Transition
  /** Once a second, if there are queues. */
  queues: QueuesTick
  /** At once: somebody has acted, or tried to, on this pod or (as far as told) another. */
  act: ActNote
  /** A built-in load or a broken vendor was switched, by whomever. Only where `hello.demo` is there. */
  demo: DemoState
}
