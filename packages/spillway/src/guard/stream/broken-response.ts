/** A response whose body was broken off before anybody read it: whoever comes to read it hears why. */
const WAYS_TO_READ = ['arrayBuffer', 'blob', 'bytes', 'formData', 'json', 'text', 'clone'] as const

/** Before its body is broken off: who comes to read it then would hear no more than that it is unusable. */
export function tellWhy(response: Response, error: unknown): void {
  if (response.body?.locked !== false) return
  for (const way of WAYS_TO_READ) {
    if (!(way in response)) continue
    const value = way === 'clone' ? throwing(error) : () => Promise.reject(error)
    Object.defineProperty(response, way, { value, configurable: true, writable: true })
  }
}

function throwing(error: unknown): () => never {
  return () => {
    throw error
  }
}
