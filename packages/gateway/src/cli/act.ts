/** One action on the fleet, and what came of it. */
import type { OperatorRequest, OperatorResult } from 'spillway'
import { EXIT } from './command-row.js'
import { openOperating, usualName } from './operating.js'
import { durationInWords } from './spans.js'

type Distributed<T> = T extends unknown ? Omit<T, 'by'> : never

interface ActionValues {
  readonly by?: string | undefined
  readonly json?: boolean | undefined
  readonly config?: string | undefined
  readonly admin?: string | undefined
}

export async function act(
  request: Distributed<OperatorRequest>,
  { by = usualName(), json, config, admin }: ActionValues,
): Promise<number> {
  const { operator, close } = await openOperating({ config, admin })
  try {
    const done = await operator.perform({ ...request, by } as OperatorRequest)
    process.stdout.write(json ? `${JSON.stringify(done)}\n` : `${inWords(done)}\n`)
    return EXIT.ok
  } finally {
    await close()
  }
}

function inWords({ guard, message, forMs, by }: OperatorResult): string {
  const time = forMs === undefined ? '' : ` for ${durationInWords(forMs)}`
  return `${guard}: ${message}${time}, by ${by}`
}
