// Loaded into the gateway by --import to measure its memory: at each message on the IPC channel it collects garbage and sends {heap},
// the bytes in use inside and outside V8's heap.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc')

process.on('message', () => {
  collect()
  collect()
  const { heapUsed, external } = process.memoryUsage()
  process.send?.({ heap: heapUsed + external })
})
process.channel?.unref()
