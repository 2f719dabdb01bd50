// https://github.com/connor4312/cockatiel#samplingbreaker. Its `minimumRps` of 0.5 is 5 calls in 10 s.
import { circuitBreaker, handleAll, SamplingBreaker } from 'cockatiel'

export function createBreaker({ call }) {
  const breaker = circuitBreaker(handleAll, {
    halfOpenAfter: 30_000,
    breaker: new SamplingBreaker({ threshold: 0.5, duration: 10_000, minimumRps: 0.5 }),
  })
  return () => breaker.execute(call)
}
