import assert from 'node:assert/strict'
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { test, type Test } from 'tap'
import { createLogOutput } from '../../../plugins/extensions/logs/logger.ts'
import { checkLoginSecretFile, readOrCreateLoginSecret, replicasProblem } from '../../../plugins/base/secrets/secret-file.ts'
import { temporaryFolder } from '../../fakes/store-file.ts'

const folder = async (t: Test): Promise<[dataDir: string, path: string]> => {
  const dataDir = join(await temporaryFolder(t), 'data')
  return [dataDir, join(dataDir, 'login.key')]
}

test('the secret of logins is JWT_SECRET, else made once and kept', async (t) => {
  const [dataDir, path] = await folder(t)
  const told: string[] = []
  const warn = (sentence: string): void => { told.push(sentence) }
  const secret = (env: Parameters<typeof readOrCreateLoginSecret>[0]): string | undefined => readOrCreateLoginSecret(env, dataDir, warn)
  checkLoginSecretFile(dataDir)
  assert.equal(secret({ JWT_SECRET: 'given' }), 'given')
  assert.ok(!existsSync(dataDir), 'nothing to keep, nothing made')
  const made = secret({})
  assert.match(made ?? '', /^[0-9a-f]{64}$/)
  assert.equal(statSync(path).mode & 0o777, 0o600)
  assert.equal(readFileSync(path, 'utf8').trim(), made)
  assert.deepEqual([secret({}), secret({ DB_URL: 'pglite:///data/db' })], [made, made])
  assert.deepEqual(told, [])
  assert.notEqual(readOrCreateLoginSecret({}, (await folder(t))[0], assert.fail), made)
})

test('replicas that may not know each other\'s logins are warned of', async () => {
  for (const [env, isWarned] of [
    [{}, false], [{ DB_URL: 'pglite://./db' }, false], [{ JWT_SECRET: 'x', DB_URL: 'postgres://a/b' }, false],
    [{ DB_URL: 'postgres://a/b' }, true], [{ DB_URL: 'postgresql://a/b' }, true]
  ] as const) {
    const problem = replicasProblem(env)
    if (isWarned) assert.match(problem ?? '', /JWT_SECRET is not set.*several gateways.*openssl rand -hex 32/)
    else assert.equal(problem, undefined)
  }
})

test('a file that cannot be used is refused with a sentence, and one that cannot be made is told of', async (t) => {
  const [dataDir, path] = await folder(t)
  readOrCreateLoginSecret({}, dataDir, assert.fail)
  for (const [spoil, sentence] of [
    [() => { chmodSync(path, 0o644) }, /login\.key is accessible to users other than its owner \(mode 644\)/],
    [() => { chmodSync(path, 0o600); writeFileSync(path, 'abc') }, /does not contain 64 hexadecimal digits.* Delete it: a new one is then generated/],
    [() => { writeFileSync(path, '') }, /login\.key is empty/]
  ] as const) {
    spoil()
    assert.throws(() => { checkLoginSecretFile(dataDir) }, { message: sentence })
    assert.throws(() => readOrCreateLoginSecret({}, dataDir, assert.fail), { message: sentence })
  }
  const told: string[] = []
  const below = join(path, 'below')
  assert.equal(readOrCreateLoginSecret({}, below, (text) => { told.push(text) }), undefined)
  assert.match(told.join(), /The secret of logins cannot be written into DATA_DIR \(\w+\)\. .*set JWT_SECRET/)
})

test('a log goes on after lines that its output does not take', async () => {
  const taken: string[] = []
  let isFull = true
  const stdout = {
    isTTY: false,
    write: (text: string) => {
      if (isFull) throw new Error('ENOSPC')
      return taken.push(text) > 0
    }
  } as unknown as typeof process.stdout
  const output = await createLogOutput(stdout)
  output.write('{"msg":"lost"}\n')
  isFull = false
  output.write('{"msg":"kept"}\n')
  assert.deepEqual(taken, ['{"msg":"kept"}\n'])
  taken.length = 0
  const pretty = await createLogOutput({ ...stdout, isTTY: true } as typeof process.stdout)
  pretty.write('{"level":30,"time":1,"pid":1,"hostname":"h","msg":"listens"}\n')
  assert.match(taken.join(), /^\[\d\d:\d\d:\d\d\] .*INFO.*: .*listens.*\n$/)
})

test('what a server says neither begins a line of the log nor steers a terminal', async () => {
  const msg = 'bad\u001b]0;x\u0007\u009b\u202e\r\nFAKE\rFAKE'
  for (const isTTY of [true, false]) {
    let text = ''
    const stdout = { isTTY, write: (part: string) => { text += part } } as unknown as typeof process.stdout
    const output = await createLogOutput(stdout)
    output.write(`${JSON.stringify({ level: 40, time: 1, msg })}\n`)
    assert.doesNotMatch(text, /[\r\u0080-\u009f\u202e]|^FAKE/m)
    assert.doesNotMatch(stripVTControlCharacters(text), /\p{Cc}(?<!\n)/u)
    if (!isTTY) assert.equal((JSON.parse(text) as { msg: string }).msg, msg)
  }
})
