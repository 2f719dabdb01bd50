// https://github.com/connor4312/cockatiel#consecutivebreaker
import { ConsecutiveBreaker, circuitBreaker, handleAll } from 'cockatiel'

export function createBreaker({ call }) {
  const breaker = circuitBreaker(handleAll, {
    halfOpenAfter: 30_000,
    breaker: new ConsecutiveBreaker(5),
  })
  return () => breaker.execute(call)
}
