// The echo upstream over stdio: one JSON-RPC message per line. It exits at the end of its input.
import { answer } from './echo.mjs'

let rest = ''
process.stdin.setEncoding('utf8')
process.stdin.on('data', (chunk) => {
  const lines = (rest + chunk).split('\n')
  rest = lines.pop() ?? ''
  const answers = lines.filter((line) => line.trim() !== '').map((line) => answer(JSON.parse(line))).filter((text) => text !== undefined)
  if (answers.length > 0) process.stdout.write(`${answers.join('\n')}\n`)
})
process.stdin.on('end', () => { process.exit(0) })
