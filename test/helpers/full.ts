/** Whether tests run at their full length: `npm run soak` does, `npm test` takes a part that is enough to see each defect. */
export const isFull = process.env.TEST_FULL === '1'
