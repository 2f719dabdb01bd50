/** Random numbers that are the same in every run (mulberry32). */
export function seededRandom(seed) {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Bursts at random times, `perSecond` requests on average, each burst at one random pod. */
export function burstsByPod({ pods, perSecond, burst, seconds, seed }) {
  const random = seededRandom(seed)
  const times = Array.from({ length: pods }, () => [])
  for (let at = 0; ; ) {
    at += (-Math.log(1 - random()) * burst * 1_000) / perSecond
    if (at >= seconds * 1_000) return times
    const pod = times[Math.floor(random() * pods)]
    for (let i = 0; i < burst; i++) pod.push(at)
  }
}

/** Evenly spaced requests, the pods in turn. */
export function evenlyByPod({ pods, perSecond, seconds }) {
  const times = Array.from({ length: pods }, () => [])
  for (let i = 0; i < perSecond * seconds; i++) times[i % pods].push((i * 1_000) / perSecond)
  return times
}
