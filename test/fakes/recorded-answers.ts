// An MCP server whose answers are full of members that no revision knows. Over stdio, it appends each message that it
// receives to the file RECORD. RECORD_ERA=modern: it speaks 2026-07-28 alone, else 2025-11-25.

export const capabilities = {
  tools: { listChanged: true, vendor: 1 },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  logging: {},
  completions: {},
  experimental: { vendor: { deep: [1, null, { x: true }] } },
  vendorCapability: { a: 1 }
}
const instructions = 'Read \u2028 this.'
const serverInfo = { name: 'recorded', version: '1.0', title: 'T', vendor: { x: 1 } }
const extra = { vendorMember: { a: [1, { b: null }] }, another: 'x' }
const meta = { 'vendor/meta': { z: 1 } }

/** The results as they stand on the wire. */
export const results: Readonly<Record<string, string>> & { readonly initialize: string } = {
  initialize: JSON.stringify({ protocolVersion: '2025-11-25', capabilities, serverInfo, instructions, ...extra, _meta: meta }),
  'server/discover': JSON.stringify({
    resultType: 'complete',
    supportedVersions: ['2026-07-28'],
    capabilities,
    instructions,
    ...extra,
    _meta: { ...meta, 'io.modelcontextprotocol/serverInfo': serverInfo },
    ttlMs: 0,
    cacheScope: 'private'
  }),
  'tools/list': '{"tools":[{"name":"a.tool","title":"T","inputSchema":{"type":"object","x-vendor":12345678901234567890},"vendor":[1.0,1e400],' +
    '"annotations":{"readOnlyHint":true,"v":1},"_meta":{"k":1}}],"_meta":{"list":1},"vendorList":2}',
  'prompts/list': '{"prompts":[{"name":"p","arguments":[{"name":"x","vendor":1}],"vendor":{"a":1}}]}',
  'resources/list': '{"resources":[{"uri":"r://1","name":"r","size":1.50,"vendor":1}]}',
  'resources/templates/list': '{"resourceTemplates":[{"uriTemplate":"r://{id}","name":"t","vendor":1}]}',
  'tools/call': '{"content":[{"type":"text","text":"\\u00e9\\/","vendor":1,"_meta":{"b":2}},{"type":"vendor","x":[]}],"structuredContent":{"n":12345678901234567890,"f":1.0},"vendor":{"y":null}}',
  'prompts/get': '{"messages":[{"role":"user","content":{"type":"text","text":"hi","v":1},"v":2}],"vendor":1}',
  'resources/read': '{"contents":[{"uri":"r://1","text":"x","vendor":1}],"vendor":2}',
  'completion/complete': '{"completion":{"values":["a"],"total":1,"vendor":3},"vendor":1}',
  'vendor/method': '{"vendor":[1.0,{"a":null}]}',
  'logging/setLevel': '{}',
  'resources/subscribe': '{}',
  ping: '{}'
}
/** Errors, likewise. */
export const errors: Readonly<Record<string, string>> = { 'vendor/error': '{"code":-32123,"message":"no","data":{"n":12345678901234567890,"l":[1.0]},"vendor":1}' }
