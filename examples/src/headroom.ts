import { createSpillway, type GuardOptions } from 'spillway'

const spillway = createSpillway()
const limit = (limit: number): GuardOptions => ({
  limits: [{ limit, windowMs: '1m' }],
  timeout: { callMs: '30s' },
})
const guards = [spillway.guard('main-key', limit(20)), spillway.guard('spare-key', limit(10))]

/** Picks a guard at random, weighted by its free units. Without free units, the guard that gets some first. */
function pick() {
  const rooms = guards.map((guard) => guard.headroom())
  let at = Math.random() * rooms.reduce((sum, room) => sum + room, 0)
  for (const [index, room] of rooms.entries()) {
    if (at < room) return guards[index]!
    at -= room
  }
  return guards[0]!
}

let refused = 0
for (let i = 0; i < 33; i++)
  await pick()
    .run(() => 'ok')
    .catch(() => refused++)
for (const guard of guards) console.log(guard.name, guard.snapshot().attempts)
console.log('refused', refused)
await spillway.close()
