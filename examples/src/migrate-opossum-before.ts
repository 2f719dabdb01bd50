import CircuitBreaker from 'opossum'

let isDown = true
async function charge(amount: number): Promise<string> {
  if (isDown) throw new Error('503 from the payment API')
  return `charged ${amount}`
}

const breaker = new CircuitBreaker(charge, {
  timeout: 3_000,
  errorThresholdPercentage: 50,
  volumeThreshold: 2,
  resetTimeout: 100,
})
breaker.fallback(() => 'charged later')

for (let call = 1; call <= 3; call++) console.log(await breaker.fire(call))
console.log('open:', breaker.opened)
isDown = false
await new Promise((wake) => setTimeout(wake, 150))
console.log(await breaker.fire(4))
breaker.shutdown()
