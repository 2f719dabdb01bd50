/** Runs on a thread of its own: input and result are copied, nothing else is shared. */
export function countPrimes(below: number): number {
  let count = 0
  for (let candidate = 2; candidate < below; candidate++) if (isPrime(candidate)) count++
  return count
}

function isPrime(candidate: number): boolean {
  for (let divisor = 2; divisor * divisor <= candidate; divisor++) {
    if (candidate % divisor === 0) return false
  }
  return true
}
