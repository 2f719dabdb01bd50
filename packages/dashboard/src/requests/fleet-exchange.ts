/**
 * Decisions of all pods, exchanged through the store while there is a reader. Readers register themselves, and the
 * other pods then publish their latest decisions once a second. A question about one request is registered like a
 * reader. Everything is a short-lived entry of a group of pods, so nothing stays in the store.
 */
import type { Clock } from 'spillway'
import { createPodId, type Random, type Timer } from 'spillway/internal'
import type { Store } from 'spillway/shared'
import type { Decision } from '../wire/decisions.js'
import type { KnownRequest } from './request-log.js'

const READERS = 'dashboard:readers'
const PUBLISHED = 'dashboard:decisions'
const STEP_MS = 1_000
/** Interval at which each pod checks for readers of other pods while there are none. */
const IDLE_STEP_MS = 2_000
const LIFE_US = 5_000_000
/** Decisions of all pods in one round. Each pod gets an equal part, within these bounds. */
const MOST_BYTES = 400_000
const LEAST_POD_BYTES = 4_000
const MOST_POD_BYTES = 32_000
const MOST_QUESTIONS = 20
const MOST_ANSWER_BYTES = 60_000
const LOOK_MS = 200
const MOST_LOOKS = 20

type Pods = Pick<Store, 'pods'>['pods']

/** Data that a pod publishes. */
interface Published {
  v: 1
  decisions: Decision[]
  /** By request id. */
  answers: Record<string, KnownRequest>
}

export interface FleetExchangeOptions {
  readonly store: { readonly remote: boolean; readonly pods: Pods }
  readonly clock: Clock
  readonly membership: { readonly pod: string; readonly live: number }
  /** Whether this pod's dashboard has readers. */
  readonly hasReaders: () => boolean
  /** Own decisions after an id, the newest last. Called only while another pod reads. */
  readonly since: (id: number) => Decision[]
  readonly find: (requestId: string) => KnownRequest
  /** New decisions of other pods. */
  readonly onDecisions: (decisions: readonly Decision[]) => void
}

export class FleetExchange {
  readonly #options: FleetExchangeOptions
  #timer: Timer | undefined
  #closed = false
  /** Own decisions up to this id were published. */
  #publishedId = 0
  /** Published last time: repeated once, because a reader may have missed them. */
  #before: Decision[] = []
  /** By pod, the last id received. */
  #received = new Map<string, number>()

  constructor(options: FleetExchangeOptions) {
    this.#options = options
    this.#schedule(STEP_MS)
  }

  close(): void {
    this.#closed = true
    this.#timer?.cancel()
  }

  #schedule(delayMs: number): void {
    this.#timer = this.#options.clock.schedule(delayMs, async () => {
      const isBusy = await this.#step().catch(() => false)
      if (!this.#closed) this.#schedule(isBusy ? STEP_MS : IDLE_STEP_MS)
    })
    this.#timer.unref()
  }

  /** Returns whether there are readers, here or elsewhere. */
  async #step(): Promise<boolean> {
    const { store, membership, hasReaders } = this.#options
    // A single pod has nothing to exchange.
    if (!store.remote && membership.live < 2) return hasReaders()
    const { pods } = store
    const reads = hasReaders()
    if (reads) {
      await pods.beat({ group: READERS, pod: membership.pod, lifeUs: LIFE_US, snapshot: '' })
    }
    const others = (await pods.list({ group: READERS })).filter(({ pod }) => pod !== membership.pod)
    if (others.length > 0) await this.#publish(others.map(({ snapshot }) => snapshot))
    if (reads) this.#receive(await pods.list({ group: PUBLISHED }))
    return reads || others.length > 0
  }

  /** `questions`: request ids, or empty for a reader. */
  async #publish(questions: readonly string[]): Promise<void> {
    const { store, membership, since, find } = this.#options
    const answers: Record<string, KnownRequest> = {}
    let bytes = 0
    for (const id of questions.filter((each) => each !== '').slice(0, MOST_QUESTIONS)) {
      const known = find(id)
      bytes += JSON.stringify(known).length
      answers[id] = bytes > MOST_ANSWER_BYTES ? { decisions: [] } : known
    }
    const fresh = since(this.#publishedId + 1)
    this.#publishedId = fresh.at(-1)?.id ?? this.#publishedId
    const share = MOST_BYTES / Math.max(1, membership.live)
    const most = Math.min(MOST_POD_BYTES, Math.max(LEAST_POD_BYTES, share))
    const decisions = withinBytes([...this.#before, ...fresh], most)
    this.#before = fresh
    const snapshot = JSON.stringify({ v: 1, decisions, answers } satisfies Published)
    await store.pods.beat({ group: PUBLISHED, pod: membership.pod, lifeUs: LIFE_US, snapshot })
  }

  #receive(entries: readonly { pod: string; snapshot: string }[]): void {
    const { membership, onDecisions } = this.#options
    const received = new Map<string, number>()
    for (const { pod, snapshot } of entries) {
      if (pod === membership.pod) continue
      const last = this.#received.get(pod) ?? 0
      const fresh = readPublished(snapshot).decisions.filter(({ id }) => id > last)
      received.set(pod, Math.max(last, ...fresh.map(({ id }) => id)))
      if (fresh.length > 0) onDecisions(fresh)
    }
    this.#received = received
  }
}

/** The answers of all pods to one question. */
export interface FleetAnswers {
  podsQueried: number
  podsAnswered: number
  /** Answers of the pods that have data about the request. */
  known: KnownRequest[]
}

export interface FleetQuestion {
  readonly store: { readonly pods: Pods }
  readonly clock: Clock
  readonly random: Random
  readonly requestId: string
  /** The pod that searches, whose data is known already; undefined if it is not a pod. */
  readonly self: string | undefined
  /** Names of the live pods. */
  readonly members: readonly string[]
}

/**
 * Searches all other pods for a request. Ends when all have answered, or one of them has data about it, or after 4 s.
 */
export async function queryFleet(question: FleetQuestion): Promise<FleetAnswers> {
  const { store, clock, random, requestId, self, members } = question
  const others = new Set(members.filter((pod) => pod !== self))
  const known = new Map<string, KnownRequest>()
  if (others.size === 0) return { podsQueried: 0, podsAnswered: 0, known: [] }
  const reader = createPodId('question', random)
  const entry = { group: READERS, pod: reader }
  try {
    await store.pods.beat({ ...entry, lifeUs: LIFE_US, snapshot: requestId })
    for (let look = 0; look < MOST_LOOKS && known.size < others.size; look++) {
      await new Promise<void>((resolve) => clock.schedule(LOOK_MS, resolve))
      for (const { pod, snapshot } of await store.pods.list({ group: PUBLISHED })) {
        const { answers } = readPublished(snapshot)
        const answer = Object.hasOwn(answers, requestId) ? answers[requestId] : undefined
        if (answer !== undefined && others.has(pod)) known.set(pod, answer)
      }
      if ([...known.values()].some(isKnown)) break
    }
  } finally {
    await Promise.resolve(store.pods.leave(entry)).catch(() => {})
  }
  return {
    podsQueried: others.size,
    podsAnswered: known.size,
    known: [...known.values()].filter(isKnown),
  }
}

export function isKnown({ request, decisions }: KnownRequest): boolean {
  return request !== undefined || decisions.length > 0
}

/** In order of their ids. If there are too many, refusals and failures come first. */
function withinBytes(decisions: readonly Decision[], most: number): Decision[] {
  const kept = new Set<Decision>()
  let bytes = 0
  for (const wanted of [false, true]) {
    for (const each of decisions.toReversed()) {
      if ((each.code === 'OK') !== wanted) continue
      const size = JSON.stringify(each).length
      if (bytes + size > most) continue
      bytes += size
      kept.add(each)
    }
  }
  return decisions.filter((each) => kept.has(each))
}

/** Another release may publish in another format; that must not hide the other pods. */
function readPublished(snapshot: string): Published {
  try {
    const { v, decisions, answers } = JSON.parse(snapshot) as Published
    if (v === 1 && Array.isArray(decisions) && typeof answers === 'object') {
      return { v, decisions: decisions.filter(isDecision), answers }
    }
  } catch {}
  return { v: 1, decisions: [], answers: {} }
}

function isDecision(value: Decision): boolean {
  const { id, pod, code, path } = (value ?? {}) as Partial<Decision>
  const isNamed = typeof pod === 'string' && typeof code === 'string'
  return Number.isSafeInteger(id) && isNamed && Array.isArray(path)
}
