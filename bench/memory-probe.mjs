// Loaded into the gateway (--import) where memory is measured: at any message on the IPC channel it collects garbage
// and answers {heap}: bytes in use, inside and outside V8's heap. The gateway knows nothing of it.
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
