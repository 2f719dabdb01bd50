/** Counts and times the round trips of a store. */
import type { Store } from 'spillway/shared'

const PORTS = ['limits', 'levels', 'breakers', 'pods', 'pulses', 'queues'] as const
/** These subscribe and send no command. */
const SUBSCRIPTIONS = ['watch', 'onWake']

export class RoundTrips {
  readonly commands: Record<string, number> = {}
  readonly tookMs: number[] = []

  reset(): void {
    for (const kind of Object.keys(this.commands)) delete this.commands[kind]
    this.tookMs.length = 0
  }

  note(kind: string, reply: unknown): void {
    this.commands[kind] = (this.commands[kind] ?? 0) + 1
    const sentMs = performance.now()
    const replied = () => void this.tookMs.push(performance.now() - sentMs)
    if (reply instanceof Promise) reply.then(replied, () => {})
  }
}

export function counted(store: Store, trips: RoundTrips): Store {
  const ports = Object.fromEntries(
    PORTS.map((name) => [name, countedPort(name, store[name], trips)]),
  )
  return new Proxy(store, {
    get(target, name) {
      if (typeof name === 'string' && name in ports) return ports[name]
      const value = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

function countedPort(name: string, port: object, trips: RoundTrips): object {
  return new Proxy(port, {
    get(target, method) {
      const value = Reflect.get(target, method, target)
      if (typeof value !== 'function') return value
      return (...args: unknown[]) => {
        const reply = value.apply(target, args)
        if (!SUBSCRIPTIONS.includes(String(method))) trips.note(`${name}.${String(method)}`, reply)
        return reply
      }
    },
  })
}
