// kill -9 around the answers of the token endpoint at random times: the long run of test/integration/oauth-storage.test.ts.
import { test } from 'tap'
import { sleep } from '../helpers/client.ts'
import { killOnFile, killReplicas, whenAnswered, type Moment } from '../helpers/oauth-kills.ts'

/** Between 1 and 256 ms, each power of two as likely: how long a redemption takes depends on the machine. */
const someTime = async (): Promise<void> => { await sleep(2 ** (Math.random() * 8)) }
const moments: Moment[] = Array.from({ length: 25 }, (): Moment[] => [
  { name: 'at once', times: 1, wait: async () => { await sleep(Math.random() * 2) } },
  { name: 'while it works', times: 1, wait: someTime },
  { name: 'while it works, asked twice', times: 2, wait: someTime }
]).flat()

test('a replica that is killed at random times leaves nothing that can be used twice', async (t) => {
  await killReplicas(t, [...moments, whenAnswered])
})
test('a gateway on a settings file that is killed at random times leaves nothing that can be used twice', async (t) => {
  await killOnFile(t, [...moments, whenAnswered])
})
