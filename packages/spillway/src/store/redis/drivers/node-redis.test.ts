import * as redis from 'redis'
import { expect, it } from 'vitest'
import { nodeRedisDriver } from './node-redis.js'

it('connections to different addresses share one client class of node-redis', () => {
  const classes = new Set<unknown>()
  const driver = nodeRedisDriver({
    createClient(options: object) {
      const client = redis.createClient(options)
      // createClient() returns an object whose prototype is the instance of the class.
      classes.add(Object.getPrototypeOf(client).constructor)
      return client
    },
  })
  const hosts = ['10.0.0.1', '10.0.0.2', '10.0.0.1']
  for (const host of hosts) driver?.prepare({ host, port: 6379 }, undefined, () => {}).drop()
  driver?.prepare({ host: '10.0.0.3', port: 6380 }, { servername: 'redis' }, () => {}).drop()
  expect(classes.size).toBe(1)
})
