/** Finds the Redis servers: a single server, the nodes of a cluster, or the master of Sentinels. */

import type { RedisConfig } from '../../config/config.js'
import { hostOf } from '../../config/redis-address.js'
import { messageOf } from '../operate/fleet-connection.js'
import { type Finding, fail, ok, warn } from './finding.js'
import { type Link, openLink } from './redis-link.js'

export interface Servers {
  readonly servers: readonly string[]
  readonly findings: readonly Finding[]
}

export async function serversOf(redis: RedisConfig): Promise<Servers> {
  const { url, urls, sentinels } = redis
  if (sentinels !== undefined) return findBySentinels(redis, sentinels)
  if (urls !== undefined) return findInCluster(redis, urls)
  return { servers: [url ?? 'redis://127.0.0.1:6379'], findings: [] }
}

async function findBySentinels(redis: RedisConfig, sentinels: readonly string[]): Promise<Servers> {
  const { master = 'mymaster' } = redis
  const found: string[] = []
  const findings: Finding[] = []
  for (const sentinel of sentinels) {
    try {
      const address = await withLink(
        sentinel,
        { ...redis, username: undefined, password: undefined },
        (link) => link.send('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', master),
      )
      if (!Array.isArray(address)) {
        findings.push(
          fail(
            'sentinel',
            `does not know '${master}'`,
            'set redis.master to what it is called there',
          ),
        )
        continue
      }
      const [host, port] = address as [string, string]
      const scheme = sentinel.startsWith('rediss:') ? 'rediss' : 'redis'
      found.push(`${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`)
    } catch (error) {
      findings.push(
        warn(
          'sentinel',
          `${hostOf(sentinel)}: ${messageOf(error)}`,
          'Spillway uses the other servers, but this one should answer',
        ),
      )
    }
  }
  const masters = [...new Set(found)]
  if (found.length > 0) {
    findings.unshift(
      ok(
        'sentinels',
        `${found.length} of ${sentinels.length} answer: ${masters.map(hostOf).join(', ')}`,
      ),
    )
  }
  if (found.length === 1 && sentinels.length === 1) {
    findings.push(
      warn('sentinels', 'one alone decides nothing', 'name at least three, on three machines'),
    )
  }
  return { servers: masters, findings }
}

async function findInCluster(redis: RedisConfig, urls: readonly string[]): Promise<Servers> {
  const findings: Finding[] = []
  const servers: string[] = []
  let state: string | undefined
  for (const url of urls) {
    try {
      await withLink(url, redis, async (link) => {
        const info = fieldsOf(await link.send('CLUSTER', 'INFO'))
        state ??= info.get('cluster_state')
      })
      servers.push(url)
    } catch (error) {
      findings.push(
        warn(
          'cluster',
          `${hostOf(url)}: ${messageOf(error)}`,
          'Spillway uses the other servers, but this one should answer',
        ),
      )
    }
  }
  if (state === 'ok')
    findings.unshift(
      ok(
        'cluster',
        `all slots are served; ${servers.length} of ${urls.length} nodes named here answer`,
      ),
    )
  else if (state !== undefined)
    findings.unshift(
      fail('cluster', `state is ${state}`, 'run CLUSTER INFO on a node to see what is missing'),
    )
  if (servers.length === 0)
    findings.push(fail('cluster', 'no node answers', 'start the nodes, or check their addresses'))
  return { servers, findings }
}

async function withLink<T>(
  url: string,
  redis: RedisConfig,
  read: (link: Link) => Promise<T>,
): Promise<T> {
  const link = await openLink(url, redis)
  try {
    return await read(link)
  } finally {
    link.close()
  }
}

/** Parses the reply of `INFO` and `CLUSTER INFO`. */
export function fieldsOf(info: unknown): ReadonlyMap<string, string> {
  const lines = String(info).split('\n')
  return new Map(
    lines.flatMap((line): [string, string][] => {
      const colon = line.indexOf(':')
      return colon > 0 ? [[line.slice(0, colon), line.slice(colon + 1).trim()]] : []
    }),
  )
}
