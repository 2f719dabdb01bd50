// https://github.com/nodeshift/opossum#usage: the options of its first example; the rate is taken over 10 s by default.
// `volumeThreshold` is the minimum of 5 calls that all breakers of this rule have here.
import CircuitBreaker from 'opossum'

export function createBreaker({ call }) {
  const breaker = new CircuitBreaker(call, {
    timeout: 3_000,
    errorThresholdPercentage: 50,
    resetTimeout: 30_000,
    volumeThreshold: 5,
  })
  return () => breaker.fire()
}
