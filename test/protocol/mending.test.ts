// `null` and `[]` where MCP and JSON Schema have neither: read as absent, and everything else keeps its bytes.
import assert from 'node:assert/strict'
import { test } from 'tap'
import fc from 'fast-check'
import { conforms } from '../../protocol/conforming.ts'
import { errorShape, itemShapes, paramsShape, resultShape, serverInfoShape } from '../../protocol/message-shapes.ts'
import { mend, describeMended } from '../../protocol/mending.ts'
import type { Shape } from '../../protocol/shapes/shape.ts'
import { holds as everyTime, jsonText } from '../helpers/json-texts.ts'

type Row = readonly [written: string, read: string]
const holds = (shape: Shape, rows: readonly Row[], isChecked = false): void => {
  for (const [written, read] of rows) {
    const mended = mend(written, shape, isChecked)
    assert.equal(mended.text, read, written)
    assert.equal(mended.places.length > 0, written !== read, written)
    assert.deepEqual(mend(mended.text, shape, isChecked), { text: read, places: [] }, `again: ${written}`)
    // What is mended must not pass for what conforms.
    if (written !== read) assert.ok(!conforms(JSON.parse(written), shape), written)
  }
}
const call = resultShape('tools/call', false) as Shape

test('items: null is absent, [] is an object, at every depth of known members', async () => {
  holds(itemShapes.tools, [
    ['{"name":"a","title":null,"inputSchema":{}}', '{"name":"a","inputSchema":{}}'],
    ['{"title" : null , "name":"a"}', '{"name":"a"}'],
    ['{ "name":"a" , "title":null }', '{"name":"a"}'],
    ['{"name":"a","title":null,"n":1e400,"description":null,"_meta":null}', '{"name":"a","n":1e400}'],
    ['{"name":"a","annotations":[],"_meta":[ ],"execution":[\n]}', '{"name":"a","annotations":{},"_meta":{},"execution":{}}'],
    ['{"annotations":{"title":null,"readOnlyHint":true,"destructiveHint":null}}', '{"annotations":{"readOnlyHint":true}}'],
    ['{"icons":[{"src":"x","sizes":null,"theme":null},null,{"src":null,"mimeType":"y"}]}', '{"icons":[{"src":"x"}]}'],
    ['{"icons":[null]}', '{"icons":[]}'],
    ['{"execution":{"taskSupport":null}}', '{"execution":{}}'],
    ['{"inputSchema":null}', '{"inputSchema":{"type":"object"}}'],
    ['{"inputSchema":[],"outputSchema":null}', '{"inputSchema":{}}']
  ])
  holds(itemShapes.prompts, [
    ['{"name":"p","arguments":[{"name":"x","description":null,"required":null},null,{"name":null}]}', '{"name":"p","arguments":[{"name":"x"}]}'],
    ['{"name":"p","arguments":null}', '{"name":"p"}']
  ])
  const resource = '{"annotations":{"audience":[null,"user"],"priority":null,"lastModified":null},"size":null,"mimeType":null}'
  holds(itemShapes.resources, [[resource, '{"annotations":{"audience":["user"]}}']])
  holds(itemShapes.resourceTemplates, [[resource, '{"annotations":{"audience":["user"]}}']])
})

test('schemas: only where JSON Schema allows neither', async () => {
  const schema = (text: string): string => `{"inputSchema":${text}}`
  holds(itemShapes.tools, ([
    ['{"properties":[],"required":[],"type":null}', '{"properties":{},"required":[]}'],
    ['{"properties":{"a":null,"b":[],"c":{"type":"string","title":null,"format":null}}}', '{"properties":{"a":{},"b":{},"c":{"type":"string"}}}'],
    ['{"properties":{"title":null,"default":[]}}', '{"properties":{"title":{},"default":{}}}'],
    ['{"enum":null,"examples":null,"required":null,"minLength":null}', '{}'],
    ['{"items":[],"additionalProperties":[],"not":null,"$defs":{"x":{"properties":[]}}}', '{"items":{},"additionalProperties":{},"$defs":{"x":{"properties":{}}}}'],
    ['{"anyOf":[{"type":"null"},null,[]],"allOf":null}', '{"anyOf":[{"type":"null"},{}]}'],
    ['{"prefixItems":[null,{"title":null}]}', '{"prefixItems":[{},{}]}'],
    ['{"dependentRequired":[],"patternProperties":[],"if":{"const":null,"title":null}}', '{"dependentRequired":{},"patternProperties":{},"if":{"const":null}}'],
    ['{"properties":{"h":{"x-mcp-header":null}}}', '{"properties":{"h":{}}}'],
    // Lists of schemas stand in `items` before 2020-12.
    ['{"$schema":"http://json-schema.org/draft-07/schema#","items":[]}', '{"$schema":"http://json-schema.org/draft-07/schema#","items":[]}'],
    ['{"items":[{"title":null},null],"$schema":"http://json-schema.org/draft-04/schema#"}', '{"items":[{},{}],"$schema":"http://json-schema.org/draft-04/schema#"}']
  ] as Row[]).map(([written, read]) => [schema(written), schema(read)]))
  for (const kept of [
    '{"default":null,"const":null,"enum":[null,[]],"examples":[null,[],{"a":null}]}', '{"default":{"properties":[]}}', '{"const":[]}',
    '{"type":[],"enum":[],"required":[],"anyOf":[]}', '{"x-order":null,"x-list":[],"example":null,"nullable":null}', '{"dependencies":{"a":[]}}'
  ]) {
    holds(itemShapes.tools, [[schema(kept), schema(kept)], [schema(`{"properties":{"a":${kept}}}`), schema(`{"properties":{"a":${kept}}}`)]])
  }
})

test('results: beside content and within its blocks, never in what is the author\'s', async () => {
  const text = '{"type":"text","text":"hi"}'
  holds(call, [
    [`{"content":[${text}],"structuredContent":null,"isError":null,"_meta":null}`, `{"content":[${text}]}`],
    [`{"content":[${text}],"structuredContent":[]}`, `{"content":[${text}],"structuredContent":{}}`],
    ['{"content":null}', '{"content":[]}'],
    ['{"content":[{"type":"text","text":null,"annotations":null,"_meta":[]},null]}', '{"content":[{"type":"text","text":"","_meta":{}}]}'],
    ['{"content":[{"type":"image","data":"eA==","mimeType":"image/png","text":null,"resource":null,"uri":null}]}', '{"content":[{"type":"image","data":"eA==","mimeType":"image/png"}]}'],
    ['{"content":[{"type":"resource_link","uri":"a:1","name":null,"size":null}]}', '{"content":[{"type":"resource_link","uri":"a:1","name":""}]}'],
    ['{"content":[{"type":"resource","resource":{"uri":"a:1","text":null,"blob":"eA==","mimeType":null}}]}', '{"content":[{"type":"resource","resource":{"uri":"a:1","blob":"eA=="}}]}'],
    ['{"content":[{"type":"resource","resource":{"uri":"a:1","text":null,"blob":null}}]}', '{"content":[{"type":"resource","resource":{"uri":"a:1","text":""}}]}'],
    ['{"content":["abc",5,null]}', '{"content":[{"type":"text","text":"abc"},{"type":"text","text":"5"}]}'],
    ['null', '{"content":[]}'], ['[]', '{"content":[]}'],
    ['{"content":[[]],"isError":false}', '{"content":[{"type":"text","text":""}],"isError":false}']
  ])
  holds(resultShape('ping', false) as Shape, [['null', '{}'], ['[ ]', '{}'], [' null ', '{}']])
  for (const kept of [
    '{"content":[],"structuredContent":{"a":null,"b":[],"properties":[]},"_meta":{"a":null,"b":[]},"vendor":null}',
    '{"content":[{"type":"tool_use","id":"1","name":"n","input":null}]}',
    '{"content":[{"type":"text","text":"null [] null"}]}', '5'
  ]) holds(call, [[kept, kept]])
  const modern = '{"content":[],"structuredContent":null}'
  holds(resultShape('tools/call', true) as Shape, [[modern, modern], ['{"structuredContent":[],"resultType":null}', '{"content":[],"structuredContent":[]}']])
  holds(resultShape('tools/call', true) as Shape, [[
    '{"inputRequests":{"q":{"method":"elicitation/create","params":{"mode":null,"requestedSchema":{"properties":[]}}}},"requestState":null}',
    '{"inputRequests":{"q":{"method":"elicitation/create","params":{"requestedSchema":{"properties":{}}}}}}'
  ]])
  holds(resultShape('prompts/get', false) as Shape, [
    ['{"description":null,"messages":[{"role":"user","content":{"type":"text","text":null,"annotations":null}}]}', '{"messages":[{"role":"user","content":{"type":"text","text":""}}]}'],
    ['{"messages":null}', '{"messages":[]}']
  ])
  holds(resultShape('resources/read', false) as Shape, [['{"contents":[{"uri":"a","mimeType":null,"text":"x","_meta":null}],"ttlMs":null}', '{"contents":[{"uri":"a","text":"x"}]}']])
  holds(resultShape('completion/complete', true) as Shape, [
    ['{"completion":{"values":null,"total":null,"hasMore":null}}', '{"completion":{"values":[]}}'], ['{"completion":null}', '{"completion":{"values":[]}}']
  ])
  holds(resultShape('vendor/method', false) as Shape, [['{"a":null,"content":null,"_meta":null}', '{"a":null,"content":null}'], ['[]', '{}']])
  holds(resultShape('tasks/get', false) as Shape, [
    ['{"taskId":"1","ttl":null,"pollInterval":null}', '{"taskId":"1","ttl":null}'],
    ['{"taskId":"1","ttlMs":null,"pollIntervalMs":null,"result":null,"error":null,"inputRequests":null}', '{"taskId":"1","ttlMs":null}']
  ])
  holds(resultShape('tools/call', true) as Shape, [
    ['{"resultType":"task","taskId":"1","ttlMs":null,"statusMessage":null}', '{"resultType":"task","taskId":"1","ttlMs":null}']
  ])
})

test('beginnings, errors, questions and notifications', async () => {
  holds(resultShape('initialize', false) as Shape, [
    ['{"capabilities":[],"serverInfo":null,"instructions":null}', '{"capabilities":{},"serverInfo":{}}'],
    ['{"capabilities":{"tools":[],"prompts":null,"resources":{"subscribe":null},"experimental":{"a":null,"b":[]}}}', '{"capabilities":{"tools":{},"resources":{},"experimental":{"b":{}}}}'],
    ['{"serverInfo":{"name":"x","version":null,"icons":[]}}', '{"serverInfo":{"name":"x","icons":[]}}']
  ])
  holds(serverInfoShape, [['{"name":"x","title":null}', '{"name":"x"}'], ['null', '{}']])
  holds(errorShape, [['{"code":null,"message":null,"data":null}', '{"code":-32603,"message":"The server returned this error without a message (no code)","data":null}']])
  holds(paramsShape('sampling/createMessage'), [[
    '{"messages":[{"role":"user","content":[{"type":"tool_result","toolUseId":"1","content":[{"type":"text","text":"a","annotations":null}],"isError":null}]}],"systemPrompt":null,"modelPreferences":{"hints":null},"temperature":null,"metadata":[]}',
    '{"messages":[{"role":"user","content":[{"type":"tool_result","toolUseId":"1","content":[{"type":"text","text":"a"}]}]}],"modelPreferences":{},"metadata":{}}'
  ]])
  holds(paramsShape('elicitation/create'), [['{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"default":null,"title":null},"default":null}}}', '{"message":"m","requestedSchema":{"type":"object","properties":{"a":{},"default":{}}}}']])
  holds(paramsShape('notifications/progress'), [['{"progress":1,"total":null,"message":null,"_meta":[]}', '{"progress":1,"_meta":{}}']])
  holds(paramsShape('notifications/message'), [['{"level":"info","logger":null,"data":null}', '{"level":"info","data":null}']])
  holds(paramsShape('vendor/told'), [['{"a":null,"b":[]}', '{"a":null,"b":[]}']])
})

test('results: what has to be there is, and a value of another type is told as a text, or is absent', async () => {
  const block = (rest: string): string => `{"content":[${rest}]}`
  for (const isModern of [false, true]) {
    holds(resultShape('tools/call', isModern) as Shape, [
      ['{"structuredContent":{"a":1}}', '{"content":[],"structuredContent":{"a":1}}'], ['{}', '{"content":[]}'], [' { } ', '{"content":[]}'],
      [block('{"type":"image","data":"eA==","mimeType":null}'), block('{"type":"image","data":"eA==","mimeType":"application/octet-stream"}')],
      [block('{"type":"audio","mimeType":"audio/wav"}'), block('{"data":"","type":"audio","mimeType":"audio/wav"}')],
      [block('{"type":"resource","resource":null}'), block('{"type":"resource","resource":{"uri":"","text":""}}')],
      [block('{"type":"resource","resource":{"uri":5,"blob":"eA=="}}'), block('{"type":"resource","resource":{"uri":"","blob":"eA=="}}')],
      [block('{"text":"a"}'), block('{"type":"text","text":"a"}')],
      // Members of a type that MCP does not define are its own.
      ...['"text":null,"data":null,"icons":[]', '"data":{"x":1},"text":{},"name":5,"resource":"r","size":"big"'].map((own): [string, string] =>
        [block(`{${own},"type":"future","_meta":[]}`), block(`{${own},"type":"future","_meta":{}}`)]),
      [block('{"type":null,"text":{"a": 1}}'), block('{"type":"text","text":"{\\"a\\": 1}"}')],
      ['{"content":{"type":"text","text":5}}', '{"content":[{"type":"text","text":"5"}]}'],
      ['{"content":"a\\u0062"}', '{"content":[{"type":"text","text":"a\\u0062"}]}'],
      ['{"content":{"1":{"type":"text","text":"a"},"3":"b"}}', '{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}'],
      ['{"content":[],"isError":"true"}', '{"content":[],"isError":true}'], ['{"content":[],"isError":0}', '{"content":[]}'],
      ['5', block('{"type":"text","text":"5"}')], ['"done"', block('{"type":"text","text":"done"}')], ['[]', block('')],
      ['[{"type":"text","text":"a"},5]', block('{"type":"text","text":"a"},{"type":"text","text":"5"}')],
      ['{"content":{"a":1}}', '{"content":[{"type":"text","text":"{\\"a\\":1}"}]}'],
      ['{"content":5}', '{"content":[{"type":"text","text":"5"}]}'],
      [
        block('{"type":"text","text":"a","annotations":{"audience":"user","priority":"1"},"_meta":[]}'),
        block('{"type":"text","text":"a","annotations":{},"_meta":{}}')
      ]
    ], true)
    holds(resultShape('prompts/get', isModern) as Shape, [
      ['{}', '{"messages":[]}'], ['null', '{"messages":[]}'],
      ['{"messages":[{"role":"user","content":null}]}', '{"messages":[{"role":"user","content":{"type":"text","text":""}}]}'],
      ['{"messages":[{"role":null,"content":"a"},"b"]}', '{"messages":[{"role":"user","content":{"type":"text","text":"a"}},{"role":"user","content":{"type":"text","text":"b"}}]}'],
      ['{"messages":[{"role":"system","content":[{"text":"a"}]}]}', '{"messages":[{"role":"user","content":{"type":"text","text":"a"}}]}'],
      ['{"messages":{"0":{"role":"assistant"}}}', '{"messages":[{"content":{"type":"text","text":""},"role":"assistant"}]}']
    ], true)
    holds(resultShape('resources/read', isModern, '"a:1"') as Shape, [
      ['{"contents":[{"uri":null,"text":"x"},{"blob":"eA=="},{"uri":"b:2"},"y"]}', '{"contents":[{"uri":"a:1","text":"x"},{"uri":"a:1","blob":"eA=="},{"text":"","uri":"b:2"},{"uri":"a:1","text":"y"}]}'],
      ['{"contents":{"uri":"b:2","text":"x"}}', '{"contents":[{"uri":"b:2","text":"x"}]}'], ['null', '{"contents":[]}']
    ], true)
    holds(resultShape('completion/complete', isModern) as Shape, [
      ['{}', '{"completion":{"values":[]}}'], ['{"completion":{"values":{"1":"a"},"total":"5"}}', '{"completion":{"values":["a"]}}']
    ], true)
    // A task that has begun, and a question, have no content.
    for (const kept of ['{"task":{"taskId":"1"}}', '{"resultType":"input_required","inputRequests":{}}', '{"requestState":"s"}']) {
      holds(resultShape('tools/call', isModern) as Shape, [[kept, kept]], true)
    }
    const info = (text: string): string => `{"serverInfo":${text}}`
    holds(resultShape('initialize', isModern) as Shape, [
      [info('{"name":"x","version":"1","title":5,"description":{},"websiteUrl":"no url"}'), info('{"name":"x","version":"1","websiteUrl":"no url"}')],
      [info('{"name":"x","icons":[{"src":"y","sizes":"48x48","theme":"blue"},{"src":5},"z"]}'), info('{"name":"x","icons":[{"src":"y"}]}')],
      [info('{"name":"x","icons":{}}'), info('{"name":"x"}')], [info('"My server"'), info('{}')],
      [info('{"name":5,"icons":{"2":{"src":"y"}}}'), info('{"icons":[{"src":"y"}]}')]
    ], true)
  }
  holds(errorShape, [
    ['{"code":-32000,"message":null}', '{"code":-32000,"message":"The server returned this error without a message (-32000)"}'],
    ['{"code":"-5","message":{"a":1}}', '{"code":-5,"message":"{\\"a\\":1}"}'],
    ['{"code":"0","message":"x"}', '{"code":0,"message":"x"}'], ['{"code":"007","message":"x"}', '{"code":-32603,"message":"x"}'],
    ...['1.5', '1e400', '2147483648', '12345678901234567890', '"x"', 'null', '[]', 'true'].map((code) =>
      [`{"code":${code},"message":"x"}`, '{"code":-32603,"message":"x"}'] as const),
    ...['-2147483648', '1e2', '0'].map((code) => [`{"code":${code},"message":"x"}`, `{"code":${code},"message":"x"}`] as const),
    ['{"data":[]}', '{"code":-32603,"message":"The server returned this error without a message (no code)","data":[]}']
  ], true)
  // A repeated member stays, and what is added does not touch it.
  assert.equal(mend('{"text":null,"text":null}', call, true).text, '{"content":[],"text":null,"text":null}')
})

test('a result that conforms is not read as text', async () => {
  const image = '{"type":"image","data":"","mimeType":"image/png"}'
  for (const text of [
    '{"content":[{"type":"text","text":"\\"type\\": 5"}],"isError":false}', '{"content":[],"structuredContent":{"a":[null,[]]}}',
    `{"content":[${image},{"type":"resource","resource":{"uri":"a","blob":"AA=="}},{"type":"resource_link","uri":"a","name":"b"}]}`,
    '{"task":{"taskId":"1"}}', '{"resultType":"input_required","requestState":"x"}',
    '{"content":[{"type":"of another revision","text":{},"data":null}],"more":null}'
  ]) {
    assert.ok(conforms(JSON.parse(text), call), text)
    assert.equal(mend(text, call, true).text, text)
  }
  for (const text of [
    '{"structuredContent":{}}', '{"content":"a"}', '{"content":["a"]}', '{"content":[{"type":"image"}]}', '{"content":[{"text":5}]}', '5', '{"content":[],"_meta":[]}',
    '{"content":[{"type":"resource","resource":{"uri":"a"}}]}', '{"content":[{"type":"text","text":"a","annotations":{"audience":[5]}}]}'
  ]) assert.equal(conforms(JSON.parse(text), call), mend(text, call, true).text === text, text)
})

test('odd texts: repeated members, names of Object.prototype, escapes, much of everything', async () => {
  // Parsers differ in which of two they read: both stay, and the item is refused.
  assert.equal(mend('{"title":"x","title":null}', itemShapes.tools).text, '{"title":"x","title":null}')
  holds(itemShapes.tools, [
    ['{"inputSchema":{"properties":{"__proto__":null,"constructor":[],"toString":{"title":null}}}}', '{"inputSchema":{"properties":{"__proto__":{},"constructor":{},"toString":{}}}}'],
    ['{"t\\u0069tle":null,"name":"\\u006eull"}', '{"name":"\\u006eull"}']
  ])
  const many = `{"content":[${Array.from({ length: 30_000 }, () => '{"type":"text","text":null}').join()}]}`
  const { text, places } = mend(many, call)
  assert.equal((JSON.parse(text) as { content: unknown[] }).content.length, 30_000)
  assert.deepEqual(places, ['content[0].text', 'content[1].text', 'content[2].text'])
  const deep = `${'{"not":'.repeat(900)}{"title":null}${'}'.repeat(900)}`
  assert.equal(mend(`{"inputSchema":${deep}}`, itemShapes.tools).text, `{"inputSchema":${deep.replace('"title":null', '')}}`)
})

test('whatever the text: it stays JSON, is mended once, and keeps what has no null and no []', async () => {
  const shapes = [...Object.values(itemShapes), call, paramsShape('sampling/createMessage'), resultShape('initialize', false) as Shape]
  everyTime(fc.property(jsonText, fc.constantFrom(...shapes), fc.constantFrom('inputSchema', 'content', 'annotations', 'capabilities', 'x'), ({ text }, shape, key) => {
    const written = `{"${key}":${text},"title":"t"}`
    const mended = mend(written, shape)
    JSON.parse(mended.text)
    assert.equal(mended.places.length === 0, mended.text === written)
    if (!/null|\[\s*\]/.test(written)) assert.equal(mended.text, written)
    assert.equal(mend(mended.text, shape).text, mended.text)
    const checked = mend(written, shape, true).text
    JSON.parse(checked)
    assert.equal(mend(checked, shape, true).text, checked)
  }))
})

test('what is told', async () => {
  assert.equal(describeMended(['content[0].annotations', '']), 'null, [] for an object, or a value of another type is treated as absent ("content[0].annotations", the whole)')
})
