import pLimit from 'p-limit'
import PQueue from 'p-queue'

const order: string[] = []
const work = async (name: string) => void order.push(name)

const limit = pLimit(1)
await Promise.all([limit(() => work('a')), limit(() => work('b'))])

const queue = new PQueue({ concurrency: 1 })
const first = queue.add(() => work('first'))
const low = queue.add(() => work('low'), { priority: 0 })
const high = queue.add(() => work('high'), { priority: 10 })
await Promise.all([first, low, high])
console.log(order.join(' '))
