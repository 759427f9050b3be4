// The detectors of guards read any text in linear time.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { maskText, type DetectedKind } from '../../plugins/extensions/guards/detect/mask.ts'

const all: readonly DetectedKind[] = ['secrets', 'email', 'card', 'iban', 'phone']

test('long hostile texts take about as long for each character as short ones', async () => {
  const hostile = [
    '@', 'a', 'a.', 'a@a.', 'bob@x.com ', 'eyJ-', 'xoxb-', 'a://b:', '4111 ', '1 ', '+1 ', 'DE89 ', '0123 456 ', '(01', '\\n', '%4',
    '-----BEGIN PRIVATE KEY-----'
  ]
  for (const part of hostile) {
    const timeOf = (length: number): number => {
      const text = part.repeat(Math.ceil(length / part.length))
      const from = process.cpuUsage().user
      maskText(text, all)
      return process.cpuUsage().user - from
    }
    timeOf(20_000)
    const [short, long] = [timeOf(20_000), timeOf(640_000)]
    // 32 times the length: quadratic time would be 1,024 times as long.
    assert.ok(long < Math.max(short, 4_000) * 250, `${part}: ${short} and ${long} µs`)
  }
})
