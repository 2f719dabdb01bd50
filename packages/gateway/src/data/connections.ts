/**
 * Connections of a port: how many, from where, and whether whoever is at the other end still does its
 * part. Looked at once a second, so a request costs nothing for it.
 */
import type { Socket } from 'node:net'
import { clientNetwork } from 'spillway/http'
import type { ServerLimits } from '../config/shapes/server-limits-shape.js'

const LOOK_EVERY_MS = 1_000

type Limits = Pick<ServerLimits, 'connections' | 'connectionsPerAddress'>

export class Connections {
  readonly #limits: Limits
  readonly #open = new Set<Socket>()
  readonly #byAddress = new Map<string, number>()
  readonly #looking: NodeJS.Timeout
  /** Turned away since the start. */
  refused = 0

  constructor(limits: Limits, look: (socket: Socket, nowMs: number) => void) {
    this.#limits = limits
    this.#looking = setInterval(() => {
      const nowMs = performance.now()
      for (const socket of this.#open) look(socket, nowMs)
    }, LOOK_EVERY_MS).unref()
  }

  /** False: there are too many, and this one is closed. */
  admit(socket: Socket): boolean {
    const address = clientNetwork(socket.remoteAddress ?? '')
    const theirs = this.#byAddress.get(address) ?? 0
    const { connections, connectionsPerAddress } = this.#limits
    if (theirs >= connectionsPerAddress || this.#open.size >= connections) {
      this.refused++
      socket.destroy()
      return false
    }
    this.#open.add(socket)
    this.#byAddress.set(address, theirs + 1)
    socket.once('close', () => this.#gone(socket, address))
    return true
  }

  closeThose(which: (socket: Socket) => boolean): void {
    for (const socket of this.#open) if (which(socket)) socket.destroy()
  }

  close(): void {
    clearInterval(this.#looking)
  }

  #gone(socket: Socket, address: string): void {
    this.#open.delete(socket)
    const left = (this.#byAddress.get(address) ?? 1) - 1
    if (left === 0) this.#byAddress.delete(address)
    else this.#byAddress.set(address, left)
  }
}
