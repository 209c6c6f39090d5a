export default { test: { testTimeout: 120_000, hookTimeout: 120_000 } };
