/** Runs one action on the fleet and prints its result. */
import type { OperatorRequest, OperatorResult } from 'spillway/operate'
import { EXIT } from '../command.js'
import { formatDuration } from '../format-duration.js'
import { defaultOperatorName, type FleetValues, openFleetConnection } from './fleet-connection.js'

type Distributed<T> = T extends unknown ? Omit<T, 'by'> : never

interface ActionValues extends FleetValues {
  readonly by?: string | undefined
  readonly json?: boolean | undefined
}

export async function performAction(
  request: Distributed<OperatorRequest>,
  { by = defaultOperatorName(), json, config, redis, prefix, admin }: ActionValues,
): Promise<number> {
  const { operator, close } = await openFleetConnection({ config, redis, prefix, admin })
  try {
    const done = await operator.perform({ ...request, by } as OperatorRequest)
    process.stdout.write(json ? `${JSON.stringify(done)}\n` : `${inWords(done)}\n`)
    return EXIT.ok
  } finally {
    await close()
  }
}

function inWords({ guard, message, forMs, by }: OperatorResult): string {
  const time = forMs === undefined ? '' : ` for ${formatDuration(forMs)}`
  return `${guard}: ${message}${time}, by ${by}`
}
