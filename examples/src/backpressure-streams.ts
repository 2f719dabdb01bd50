import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createBackpressureQueue, queueReadableStream, queueWritable } from 'spillway/local'

const queue = createBackpressureQueue<string>({ size: 4 })

// From a stream of Node's to one of the Web's; either end may be any of the four.
const written = pipeline(Readable.from(['a', 'b', 'c', 'd', 'e', 'f']), queueWritable(queue))
for await (const item of queueReadableStream(queue)) console.log(item, queue.length <= 4)
await written
