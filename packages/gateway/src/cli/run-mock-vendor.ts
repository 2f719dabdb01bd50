/** Runs a mock vendor until it is told to stop. */
import { once } from 'node:events'
import { createMockVendor, type MockVendorOptions } from '@spillway/mock-vendor'

/** Mistakes in it are found, and said, by the vendor itself. */
interface Wanted {
  readonly port: number
  readonly host: string | undefined
  readonly knobs: object
  readonly limits: readonly object[] | undefined
  readonly seed: number | undefined
}

export async function runMockVendor(wanted: Wanted): Promise<void> {
  const vendor = createMockVendor(wanted as MockVendorOptions)
  const { url } = await vendor.start()
  process.stderr.write(`Mock vendor on ${url}

Try:
  curl -s ${url}/v1/chat/completions -H 'content-type: application/json' -d '{"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]}'

Ctrl-C stops it.
`)
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')])
  const { counts } = vendor
  await vendor.close()
  process.stderr.write(`\nrequests: ${JSON.stringify(counts)}\n`)
}
