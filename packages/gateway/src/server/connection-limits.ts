/** Limits the number of connections in all and per address, and runs the periodic check of the open ones. */
import type { Socket } from 'node:net'
import type { Clock } from 'spillway'
import { clientNetwork } from 'spillway/http'
import type { Timer } from 'spillway/internal'
import type { ServerLimits } from '../config/shapes/server-limits-shape.js'

/** One timer for all connections, so that a request needs none. */
const CHECK_EVERY_MS = 1_000

type Limits = Pick<ServerLimits, 'connections' | 'connectionsPerAddress' | 'headersMs'>

export class ConnectionLimits {
  readonly #limits: Limits
  readonly #byAddress = new Map<string, number>()
  readonly #clock: Clock
  #checking: Timer
  #open = 0
  /** Connections closed on arrival since the start. */
  refused = 0

  constructor(limits: Limits, check: (nowMs: number) => void, clock: Clock) {
    this.#limits = limits
    this.#clock = clock
    this.#checking = this.#checkLater(check)
  }

  /** False if a limit is reached; the connection is then closed. */
  admit(socket: Socket): boolean {
    const address = clientNetwork(socket.remoteAddress ?? '')
    const ofAddress = this.#byAddress.get(address) ?? 0
    const { connections, connectionsPerAddress } = this.#limits
    // Connections to a Unix socket have no address.
    const hasTooMany = address !== '' && ofAddress >= connectionsPerAddress
    if (hasTooMany || this.#open >= connections) {
      this.refused++
      socket.destroy()
      return false
    }
    this.#open++
    this.#byAddress.set(address, ofAddress + 1)
    socket.once('close', () => this.#closed(address))
    return true
  }

  close(): void {
    this.#checking.cancel()
  }

  #checkLater(check: (nowMs: number) => void): Timer {
    const timer = this.#clock.schedule(Math.min(CHECK_EVERY_MS, this.#limits.headersMs), () => {
      this.#checking = this.#checkLater(check)
      check(this.#clock.now())
    })
    timer.unref()
    return timer
  }

  #closed(address: string): void {
    this.#open--
    const left = (this.#byAddress.get(address) ?? 1) - 1
    if (left === 0) this.#byAddress.delete(address)
    else this.#byAddress.set(address, left)
  }
}
