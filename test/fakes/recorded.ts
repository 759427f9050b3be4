// A server over stdio that writes down what it receives, and answers with the texts of recorded-answers.ts.
import { appendFileSync } from 'node:fs'
import { env, stdin, stdout } from 'node:process'
import { createInterface } from 'node:readline'
import { errors, results } from './recorded-answers.ts'

createInterface({ input: stdin }).on('line', (text) => {
  if (env.RECORD) appendFileSync(env.RECORD, `${text}\n`)
  const { id, method } = JSON.parse(text) as { id?: unknown, method?: string }
  if (id === undefined || method === undefined) return
  const isModern = env.RECORD_ERA === 'modern'
  const other = isModern ? 'initialize' : 'server/discover'
  const own = method === other ? undefined : results[method]
  const result = own === undefined || !isModern ? own : own.replace('{', own.includes('"resultType"') ? '{' : '{"resultType":"complete",').replace(',}', '}')
  const error = errors[method] ?? '{"code":-32601,"message":"Method not found"}'
  if (method === 'vendor/hang') return
  stdout.write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},${result === undefined ? `"error":${error}` : `"result":${result}`}}\n`)
})
