import assert from 'node:assert/strict'
import { test } from 'tap'
import { blocksOf } from '../../../plugins/management/console/forms/result.ts'

test('images and audio that the console does not display are files with a type and a size', async () => {
  const resultOf = (type: string, mimeType: string | undefined, data = 'AAAA'): unknown[] =>
    blocksOf({ content: [{ type, mimeType, data }] }).map(({ kind, text = '' }) => [kind, text])
  for (const type of ['png', 'jpeg', 'gif', 'webp']) assert.deepEqual(resultOf('image', `image/${type}`), [['image', '']])
  assert.deepEqual(resultOf('audio', 'audio/x-wav'), [['audio', '']])
  for (const type of ['image/svg+xml', 'image/bmp', 'text/html', 'image/png"']) {
    assert.deepEqual(resultOf('image', type), [['file', `3 bytes of ${type}`]])
  }
  assert.deepEqual(resultOf('image', 'image/bmp', 'AAECAw=='), [['file', '4 bytes of image/bmp']])
  assert.deepEqual(resultOf('image', undefined), [['file', '3 bytes of an unknown type']])
  assert.deepEqual(resultOf('image', 'image/png', '"not base64'), [['file', '8 bytes of image/png']])
  const resource = { uri: 'file:///a/b.svg', mimeType: 'image/svg+xml', blob: 'AAAA' }
  const [block] = blocksOf({ contents: [resource] })
  assert.deepEqual([block?.kind, block?.name, block?.by], ['file', 'b.svg', resource.uri])
})
