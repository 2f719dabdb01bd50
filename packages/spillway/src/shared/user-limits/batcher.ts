/**
 * Group commit: one trip at a time carries everybody who asked in one go, or while the last one was
 * under way, in order. Alone, a request waits for nobody.
 */
import { gathering } from '../../core/gathering.js'
import { isThenable } from '../../core/thenable.js'
import type { MaybePromise } from '../../store/port.js'

const MOST_IN_A_TRIP = 256

interface Asked<Q, A> {
  request: Q
  resolve: (answer: A) => void
  reject: (error: unknown) => void
}

export class Batcher<Q, A> {
  readonly #send: (requests: Q[]) => MaybePromise<A[]>
  #waiting: Asked<Q, A>[] = []
  #underWay = false
  readonly #goSoon = gathering(() => this.#go())

  constructor(send: (requests: Q[]) => MaybePromise<A[]>) {
    this.#send = send
  }

  ask(request: Q): Promise<A> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ request, resolve, reject })
      if (!this.#underWay) this.#goSoon()
    })
  }

  #go(): void {
    while (this.#waiting.length > 0 && !this.#underWay) {
      const trip = this.#waiting.splice(0, MOST_IN_A_TRIP)
      let answers: MaybePromise<A[]>
      try {
        answers = this.#send(trip.map(({ request }) => request))
      } catch (error) {
        for (const { reject } of trip) reject(error)
        continue
      }
      if (!isThenable(answers)) {
        deliver(trip, answers)
        continue
      }
      this.#underWay = true
      answers.then(
        (each) => this.#back(() => deliver(trip, each)),
        (error) =>
          this.#back(() => {
            for (const { reject } of trip) reject(error)
          }),
      )
    }
  }

  #back(handle: () => void): void {
    this.#underWay = false
    handle()
    this.#go()
  }
}

function deliver<Q, A>(trip: readonly Asked<Q, A>[], answers: readonly A[]): void {
  for (const [index, { resolve }] of trip.entries()) resolve(answers[index] as A)
}
