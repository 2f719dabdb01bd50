/** All pods, each by what it says of itself. */
import type { StoreWord } from './words.js'

export interface Fleet {
  at: number
  store: {
    status: StoreWord
    degraded: boolean
    sinceAt: number
    /** In words, for people; of each guard that has something to say. */
    problems: string[]
  }
  /**
   * All guards that any pod has, by name; `PodRow.guards` refers to them by their place. The order may change
   * from tick to tick.
   */
  names: string[]
  /** This pod first, the others by name. While the store is away: as last heard, `ageMs` says when. */
  pods: PodRow[]
  /** More than these are alive. */
  podsLeftOut: number
}

export interface PodRow {
  pod: string
  /** Since its last word. Over 2,000 it is late, over 5,000 it is gone. */
  ageMs: number
  /** `unknown`: it runs a release that says nothing of itself. */
  state: 'up' | 'draining' | 'asked' | 'unknown'
  version: string
  upMs: number
  /** The highest of its guards' signals, 1 is the limit; and which one. Absent: nothing sheds. */
  pressure?: number
  pressureBy?: string
  /** Of its event loop: the mean delay of the last second, and what part of the time it was busy, 0 to 1. */
  loopMs: number
  loopBusy: number
  memoryMb: number
  inFlight: number
  waiting: number
  store: StoreWord
  /** By guard: what this pod did a second, as it says. */
  guards: PodGuardRow[]
}

/**
 * [place in `names`, calls a second, refused a second, running, waiting, its breaker as this pod sees it, decided a
 * second]. Of several lanes the worst breaker. Decided: refused, or begun; whoever waited was decided later than it came.
 */
export type PodGuardRow = [
  guard: number,
  calls: number,
  refused: number,
  active: number,
  waiting: number,
  breaker: BreakerCode,
  decided: number,
]

/** 0 closed, 1 half-open, 2 open, 3 isolated, 4 this pod isolates itself, -1 there is none, or it was never used. */
export type BreakerCode = -1 | 0 | 1 | 2 | 3 | 4
