// Loaded into a gateway by --import: at each SIGWINCH it collects garbage and writes the bytes in use to the file HEAP_FILE.
import { writeFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const file = process.env.HEAP_FILE
if (file !== undefined) {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc')
  process.on('SIGWINCH', () => {
    for (let n = 0; n < 4; n++) collect()
    const { heapUsed, external } = process.memoryUsage()
    writeFileSync(file, `${heapUsed + external}\n`, { flag: 'a' })
  })
}
