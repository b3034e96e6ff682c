import assert from "node:assert/strict";
import { test } from "node:test";
import { pragmas, undoes } from "../../src/data.js";
import { OPERATIONS, errorText, estimate, interpolate, leaveOneOut, measurements, points, uncertain } from "../../src/estimates/inserts.js";
import { estimateMix, leaveOneOut as leaveOut } from "../../src/estimates/mix.js";
import { billed, compared as besides, envelope, memory, month, ranked } from "../../src/estimates/rank.js";
import * as names from "../../src/names.js";
import { sourceOf, sources } from "../../src/question.js";
import { FEES, committed, report } from "../results.js";

/**
 * Messages at sizes that the reference run has not measured: instructions of the work, by configuration.
 *
 *     stablebench run users --rows ROWS --payload PAYLOAD --batches N --at middle,end --rules 2026-08
 */
const MEASURED = [
  {
    at: { n: 5, payload: 300, rows: 200_000, place: "middle" },
    instructions: { btree: 1_509_226, "sqlite/persist": 4_345_461, "sqlite/memory": 5_286_994, "sqlite/off": 3_793_655, "sqlite/wal": 4_184_630, "sqlite-vfs": 5_361_071, append: 163_857, array: 163_432 },
  },
  {
    at: { n: 5, payload: 300, rows: 200_000, place: "end" },
    instructions: { btree: 1_920_284, "sqlite/persist": 2_825_820, "sqlite/memory": 2_298_916, "sqlite/off": 2_435_738, "sqlite/wal": 2_918_344, "sqlite-vfs": 3_348_417, append: 163_857, array: 163_432 },
  },
  {
    at: { n: 3, payload: 1000, rows: 50_000, place: "middle" },
    instructions: { btree: 2_398_663, "sqlite/persist": 4_412_771, "sqlite/memory": 4_634_684, "sqlite/off": 3_700_725, "sqlite/wal": 3_851_217, "sqlite-vfs": 4_364_629, append: 165_929, array: 165_514 },
  },
  {
    at: { n: 20, payload: 1000, rows: 50_000, place: "middle" },
    instructions: { btree: 4_266_545, "sqlite/persist": 71_621_524, "sqlite/memory": 71_310_136, "sqlite/off": 69_932_073, "sqlite/wal": 70_376_140, "sqlite-vfs": 45_099_227, append: 184_017, array: 183_517 },
  },
  {
    at: { n: 300, payload: 1000, rows: 50_000, place: "middle" },
    instructions: { btree: 31_136_636, "sqlite/persist": 90_299_704, "sqlite/memory": 87_370_373, "sqlite/off": 83_749_577, "sqlite/wal": 86_239_618, "sqlite-vfs": 59_758_854, append: 1_122_049, array: 1_920_037 },
  },
  {
    at: { n: 3, payload: 1000, rows: 50_000, place: "end" },
    instructions: { btree: 2_968_292, "sqlite/persist": 3_581_380, "sqlite/memory": 3_437_067, "sqlite/off": 3_003_534, "sqlite/wal": 2_959_059, "sqlite-vfs": 3_534_125, append: 165_929, array: 325_626 },
  },
  {
    at: { n: 20, payload: 1000, rows: 50_000, place: "end" },
    instructions: { btree: 6_040_614, "sqlite/persist": 3_955_887, "sqlite/memory": 3_968_502, "sqlite/off": 3_374_129, "sqlite/wal": 3_630_942, "sqlite-vfs": 4_194_097, append: 184_017, array: 343_629 },
  },
  {
    at: { n: 300, payload: 1000, rows: 50_000, place: "end" },
    instructions: { btree: 42_638_403, "sqlite/persist": 13_864_352, "sqlite/memory": 13_837_396, "sqlite/off": 12_892_841, "sqlite/wal": 14_267_452, "sqlite-vfs": 12_068_904, append: 1_122_049, array: 2_080_149 },
  },
  {
    at: { n: 5, payload: 40, rows: 300_000, place: "middle" },
    instructions: { btree: 1_132_435, "sqlite/persist": 4_195_974, "sqlite/memory": 4_416_032, "sqlite/off": 3_564_292, "sqlite/wal": 3_794_806, "sqlite-vfs": 3_973_531, append: 162_297, array: 161_872 },
  },
  {
    at: { n: 40, payload: 40, rows: 300_000, place: "middle" },
    instructions: { btree: 2_932_247, "sqlite/persist": 4_659_321, "sqlite/memory": 4_879_365, "sqlite/off": 4_027_861, "sqlite/wal": 4_258_375, "sqlite-vfs": 4_379_564, append: 165_937, array: 165_337 },
  },
  {
    at: { n: 400, payload: 40, rows: 300_000, place: "middle" },
    instructions: { btree: 21_663_207, "sqlite/persist": 29_683_937, "sqlite/memory": 28_948_780, "sqlite/off": 28_208_316, "sqlite/wal": 28_764_845, "sqlite-vfs": 28_587_570, append: 203_377, array: 200_977 },
  },
  {
    at: { n: 5, payload: 40, rows: 300_000, place: "end" },
    instructions: { btree: 1_255_498, "sqlite/persist": 2_661_062, "sqlite/memory": 2_613_410, "sqlite/off": 2_110_967, "sqlite/wal": 2_433_486, "sqlite-vfs": 2_461_380, append: 162_297, array: 161_872 },
  },
  {
    at: { n: 40, payload: 40, rows: 300_000, place: "end" },
    instructions: { btree: 3_880_357, "sqlite/persist": 3_955_040, "sqlite/memory": 4_432_097, "sqlite/off": 3_270_458, "sqlite/wal": 3_643_557, "sqlite-vfs": 3_393_285, append: 165_937, array: 165_337 },
  },
  {
    at: { n: 400, payload: 40, rows: 300_000, place: "end" },
    instructions: { btree: 28_969_043, "sqlite/persist": 9_002_069, "sqlite/memory": 9_876_081, "sqlite/off": 8_317_691, "sqlite/wal": 8_832_050, "sqlite-vfs": 8_871_462, append: 203_377, array: 361_089 },
  },
];

/** Messages at further sizes, measured when the estimates were final. */
const MEASURED_LATER = [
  {
    at: { n: 50, payload: 600, rows: 100_000, place: "middle" },
    instructions: { btree: 5_431_844, "sqlite/delete": 95_530_670, "sqlite/truncate": 97_060_798, "sqlite/persist": 95_610_783, "sqlite/memory": 95_475_568, "sqlite/off": 93_659_892, "sqlite/wal": 94_388_206, "sqlite-vfs": 46_191_364, append: 355_649, array: 354_887 },
  },
  {
    at: { n: 50, payload: 600, rows: 100_000, place: "end" },
    instructions: { btree: 8_406_667, "sqlite/delete": 5_218_794, "sqlite/truncate": 7_472_496, "sqlite/persist": 5_298_791, "sqlite/memory": 5_610_723, "sqlite/off": 4_607_093, "sqlite/wal": 5_087_257, "sqlite-vfs": 4_727_803, append: 355_649, array: 354_999 },
  },
  {
    at: { n: 400, payload: 80, rows: 150_000, place: "middle" },
    instructions: { btree: 21_944_872, "sqlite/delete": 29_022_081, "sqlite/truncate": 30_552_724, "sqlite/persist": 29_022_069, "sqlite/memory": 27_977_264, "sqlite/off": 27_356_585, "sqlite/wal": 27_841_716, "sqlite-vfs": 26_590_951, append: 380_026, array: 377_498 },
  },
  {
    at: { n: 400, payload: 80, rows: 150_000, place: "end" },
    instructions: { btree: 28_910_366, "sqlite/delete": 9_903_982, "sqlite/truncate": 12_176_754, "sqlite/persist": 9_903_970, "sqlite/memory": 9_924_281, "sqlite/off": 9_216_006, "sqlite/wal": 9_403_603, "sqlite-vfs": 8_711_780, append: 380_026, array: 377_610 },
  },
  {
    at: { n: 7, payload: 200, rows: 400_000, place: "middle" },
    instructions: { btree: 1_367_126, "sqlite/delete": 5_092_574, "sqlite/truncate": 7_913_326, "sqlite/persist": 4_932_562, "sqlite/memory": 5_473_660, "sqlite/off": 3_900_412, "sqlite/wal": 4_130_825, "sqlite-vfs": 5_144_415, append: 163_785, array: 163_350 },
  },
  {
    at: { n: 7, payload: 200, rows: 400_000, place: "end" },
    instructions: { btree: 2_097_451, "sqlite/delete": 3_415_207, "sqlite/truncate": 6_307_460, "sqlite/persist": 3_255_195, "sqlite/memory": 2_808_469, "sqlite/off": 2_384_795, "sqlite/wal": 2_387_499, "sqlite-vfs": 3_298_314, append: 163_785, array: 163_350 },
  },
  {
    at: { n: 2, payload: 400, rows: 700_000, place: "middle" },
    instructions: { btree: 1_571_998, "sqlite/delete": 4_934_494, "sqlite/truncate": 7_915_769, "sqlite/persist": 4_934_482, "sqlite/memory": 6_274_939, "sqlite/off": 3_821_817, "sqlite/wal": 6_725_773, "sqlite-vfs": 4_958_864, append: 163_065, array: 162_655 },
  },
  {
    at: { n: 2, payload: 400, rows: 700_000, place: "end" },
    instructions: { btree: 2_099_095, "sqlite/delete": 3_183_583, "sqlite/truncate": 6_317_134, "sqlite/persist": 3_183_571, "sqlite/memory": 3_696_509, "sqlite/off": 2_232_959, "sqlite/wal": 5_229_069, "sqlite-vfs": 2_902_992, append: 163_065, array: 162_655 },
  },
];

/**
 * Messages of several operations: instructions of the work, the mean of 20 messages one after the other, by configuration.
 *
 *     stablebench run mix --insert N --read N --update N --delete N --scan N --rows ROWS --payload PAYLOAD --at PLACE --rules 2026-10
 */
const MIXES = [
  {
    mix: { insert: 5, read: 0, update: 0, delete: 0, scan: 0, rows: 200_000, payload: 300, place: "random" },
    instructions: { btree: 3_967_305, "sqlite/persist": 9_501_250, "sqlite/persist,cache_size=1000": 8_330_625, "sqlite/wal": 7_529_068, "sqlite/memory": 12_833_110, "sqlite/off": 8_180_852, "sqlite-vfs": 14_415_647 },
  },
  {
    mix: { insert: 5, read: 20, update: 0, delete: 0, scan: 0, rows: 200_000, payload: 300, place: "random" },
    instructions: { btree: 11_753_212, "sqlite/persist": 18_823_321, "sqlite/persist,cache_size=1000": 11_798_837, "sqlite/wal": 16_726_534, "sqlite/memory": 20_390_778, "sqlite/off": 17_318_496, "sqlite-vfs": 20_267_177 },
  },
  {
    mix: { insert: 5, read: 20, update: 0, delete: 0, scan: 0, rows: 1_000_000, payload: 100, place: "random" },
    instructions: { btree: 9_051_581, "sqlite/persist": 20_348_991, "sqlite/persist,cache_size=1000": 12_197_629, "sqlite/wal": 18_317_261, "sqlite/memory": 23_926_828, "sqlite/off": 18_709_926, "sqlite-vfs": 20_176_142 },
  },
  {
    mix: { insert: 5, read: 20, update: 5, delete: 2, scan: 0, rows: 1_000_000, payload: 100, place: "random" },
    instructions: { btree: 14_410_832, "sqlite/persist": 24_739_754, "sqlite/persist,cache_size=1000": 14_608_568, "sqlite/wal": 21_548_125, "sqlite/memory": 28_790_203, "sqlite/off": 22_969_749, "sqlite-vfs": 23_834_902 },
  },
  {
    mix: { insert: 1, read: 3, update: 0, delete: 0, scan: 0, rows: 1_000_000, payload: 100, place: "random" },
    instructions: { btree: 2_374_292, "sqlite/persist": 6_572_153, "sqlite/persist,cache_size=1000": 4_732_506, "sqlite/wal": 5_631_527, "sqlite/memory": 7_564_516, "sqlite/off": 5_744_285, "sqlite-vfs": 6_904_001 },
  },
  {
    mix: { insert: 0, read: 20, update: 0, delete: 0, scan: 0, rows: 200_000, payload: 300, place: "random" },
    instructions: { btree: 9_202_358, "sqlite/persist": 11_363_973, "sqlite/persist,cache_size=1000": 5_578_630, "sqlite/wal": 11_862_927, "sqlite/memory": 11_232_182, "sqlite/off": 11_654_730, "sqlite-vfs": 5_940_743 },
  },
  {
    mix: { insert: 10, read: 100, update: 10, delete: 0, scan: 0, rows: 1_000_000, payload: 100, place: "middle" },
    instructions: { btree: 7_121_466, "sqlite/persist": 43_078_857, "sqlite/persist,cache_size=1000": 6_627_805, "sqlite/wal": 42_039_767, "sqlite/memory": 45_472_473, "sqlite/off": 41_870_892, "sqlite-vfs": 12_901_945 },
  },
  {
    mix: { insert: 0, read: 5, update: 1, delete: 0, scan: 0, rows: 200_000, payload: 300, place: "random" },
    instructions: { btree: 3_815_457, "sqlite/persist": 5_838_184, "sqlite/persist,cache_size=1000": 3_903_308, "sqlite/wal": 6_119_513, "sqlite/memory": 5_412_208, "sqlite/off": 5_597_508, "sqlite-vfs": 5_739_709 },
  },
  {
    mix: { insert: 20, read: 10, update: 0, delete: 0, scan: 0, rows: 1_000_000, payload: 100, place: "end" },
    instructions: { btree: 3_802_253, "sqlite/persist": 3_908_370, "sqlite/persist,cache_size=1000": 3_616_540, "sqlite/wal": 3_653_807, "sqlite/memory": 4_224_763, "sqlite/off": 3_477_813, "sqlite-vfs": 4_019_529 },
  },
  {
    mix: { insert: 0, read: 10, update: 0, delete: 0, scan: 2, rows: 1_000_000, payload: 100, place: "random" },
    instructions: { btree: 5_800_189, "sqlite/persist": 8_899_459, "sqlite/persist,cache_size=1000": 5_382_789, "sqlite/wal": 9_170_729, "sqlite/memory": 8_891_213, "sqlite/off": 9_107_695, "sqlite-vfs": 6_228_428 },
  },
  {
    mix: { insert: 50, read: 200, update: 50, delete: 50, scan: 0, rows: 1_000_000, payload: 100, place: "random" },
    instructions: { btree: 119_586_260, "sqlite/persist": 181_977_931, "sqlite/persist,cache_size=1000": 66_220_418, "sqlite/wal": 178_890_347, "sqlite/memory": 177_701_603, "sqlite/off": 170_369_035, "sqlite-vfs": 164_379_927 },
  },
  {
    mix: { insert: 2, read: 0, update: 0, delete: 2, scan: 0, rows: 50_000, payload: 1_000, place: "random" },
    instructions: { btree: 12_010_555, "sqlite/persist": 7_363_807, "sqlite/persist,cache_size=1000": 5_680_497, "sqlite/wal": 5_801_442, "sqlite/memory": 8_845_132, "sqlite/off": 6_353_812, "sqlite-vfs": 7_710_062 },
  },
  {
    mix: { insert: 3, read: 40, update: 3, delete: 0, scan: 0, rows: 500_000, payload: 200, place: "random" },
    instructions: { btree: 16_405_590, "sqlite/persist": 28_255_818, "sqlite/persist,cache_size=1000": 13_246_268, "sqlite/wal": 26_117_067, "sqlite/memory": 29_441_522, "sqlite/off": 27_154_302, "sqlite-vfs": 23_283_071 },
  },
  {
    mix: { insert: 0, read: 50, update: 0, delete: 5, scan: 0, rows: 100_000, payload: 100, place: "random" },
    instructions: { btree: 13_899_808, "sqlite/persist": 14_767_114, "sqlite/persist,cache_size=1000": 10_303_853, "sqlite/wal": 13_921_737, "sqlite/memory": 13_912_515, "sqlite/off": 13_817_436, "sqlite-vfs": 18_222_239 },
  },
  {
    mix: { insert: 30, read: 30, update: 0, delete: 0, scan: 0, rows: 300_000, payload: 150, place: "end" },
    instructions: { btree: 5_596_069, "sqlite/persist": 4_157_732, "sqlite/persist,cache_size=1000": 4_021_922, "sqlite/wal": 4_129_416, "sqlite/memory": 4_884_371, "sqlite/off": 4_433_926, "sqlite-vfs": 6_081_066 },
  },
  {
    mix: { insert: 2, read: 10, update: 2, delete: 0, scan: 0, rows: 1_000_000, payload: 100, place: "middle" },
    instructions: { btree: 2_292_378, "sqlite/persist": 11_496_465, "sqlite/persist,cache_size=1000": 3_748_644, "sqlite/wal": 10_943_545, "sqlite/memory": 12_396_450, "sqlite/off": 10_821_240, "sqlite-vfs": 4_377_958 },
  },
  {
    mix: { insert: 8, read: 15, update: 4, delete: 0, scan: 0, rows: 400_000, payload: 100, place: "random" },
    instructions: { btree: 8_979_849, "sqlite/persist": 23_377_321, "sqlite/persist,cache_size=1000": 14_367_785, "sqlite/wal": 19_803_261, "sqlite/memory": 23_769_180, "sqlite/off": 20_997_160, "sqlite-vfs": 32_683_824 },
  },
  {
    mix: { insert: 0, read: 30, update: 10, delete: 0, scan: 0, rows: 1_000_000, payload: 100, place: "middle" },
    instructions: { btree: 3_196_554, "sqlite/persist": 4_754_823, "sqlite/persist,cache_size=1000": 3_848_372, "sqlite/wal": 3_998_139, "sqlite/memory": 6_218_974, "sqlite/off": 3_474_329, "sqlite-vfs": 6_422_003 },
  },
  {
    mix: { insert: 60, read: 50, update: 0, delete: 0, scan: 0, rows: 1_000_000, payload: 100, place: "end" },
    instructions: { btree: 9_050_426, "sqlite/persist": 5_239_303, "sqlite/persist,cache_size=1000": 4_936_024, "sqlite/wal": 4_886_662, "sqlite/memory": 5_864_206, "sqlite/off": 4_682_637, "sqlite-vfs": 8_053_309 },
  },
];

/** Further mixes, measured when the estimates were final. */
const MIXES_LATER = [
  {
    mix: { insert: 4, read: 25, update: 2, delete: 0, scan: 0, rows: 200_000, payload: 300, place: "middle" },
    instructions: { btree: 3_588_944, "sqlite/persist": 29_267_826, "sqlite/persist,cache_size=1000": 6_262_643, "sqlite/wal": 28_996_203, "sqlite/memory": 30_150_086, "sqlite/off": 28_601_943, "sqlite-vfs": 9_007_560 },
  },
  {
    mix: { insert: 2, read: 12, update: 0, delete: 0, scan: 1, rows: 400_000, payload: 100, place: "random" },
    instructions: { btree: 5_821_990, "sqlite/persist": 12_636_296, "sqlite/persist,cache_size=1000": 7_963_625, "sqlite/wal": 11_389_002, "sqlite/memory": 13_008_896, "sqlite/off": 11_453_927, "sqlite-vfs": 11_381_215 },
  },
  {
    mix: { insert: 15, read: 5, update: 0, delete: 0, scan: 0, rows: 400_000, payload: 100, place: "end" },
    instructions: { btree: 2_917_520, "sqlite/persist": 3_723_964, "sqlite/persist,cache_size=1000": 3_232_041, "sqlite/wal": 3_043_568, "sqlite/memory": 3_722_156, "sqlite/off": 3_127_810, "sqlite-vfs": 3_298_198 },
  },
  {
    mix: { insert: 1, read: 8, update: 1, delete: 0, scan: 0, rows: 200_000, payload: 300, place: "random" },
    instructions: { btree: 5_710_542, "sqlite/persist": 9_769_582, "sqlite/persist,cache_size=1000": 6_196_920, "sqlite/wal": 8_967_386, "sqlite/memory": 10_694_889, "sqlite/off": 9_250_271, "sqlite-vfs": 8_872_571 },
  },
];

const USERS = committed("users");
const MIX = committed("mix");
const ALL = points(USERS);
const AT = { n: 100, payload: 100, rows: 1_000_000, place: "middle" };
const btree = ALL.columns.find((column) => column.key === "btree");
const KINDS = measurements(USERS);
const NONE = { insert: 0, read: 0, update: 0, delete: 0, scan: 0, indexes: 0, rows: 1_000_000, payload: 100, place: "random" };
const engine = (key) => KINDS.engines.find((of) => of.key === key);
const cost = (mix, key = "btree") => estimateMix(KINDS, engine(key), { ...NONE, ...mix });
const POINTS = [
  { x: 1, y: 100 },
  { x: 10, y: 1_000 },
  { x: 1_000, y: 5_000 },
];

test("a measured point is exact", () => {
  for (const { x, y } of POINTS) assert.deepEqual(interpolate(POINTS, x, "linear"), { y, low: y, high: y, from: x, to: x });
});

test("between two points, figures lie on a line, and the range reaches to the line on logarithmic axes", () => {
  const points = [{ x: 10, y: 1_000 }, { x: 1_000, y: 5_000 }];
  const { y, low, high, from, to } = interpolate(points, 505, "linear");
  assert.deepEqual([y, from, to], [3_000, 10, 1_000]);
  const curved = 1_000 * 5 ** (Math.log(50.5) / Math.log(100));
  assert.ok(Math.abs(high - curved) < 1e-9 && low === 3_000, `${low} to ${high}`);
});

test("between two points, logarithms lie on a line", () => {
  const { y, from, to } = interpolate(POINTS, 100, "logarithmic");
  assert.deepEqual([from, to], [10, 1_000]);
  assert.ok(Math.abs(y - Math.sqrt(1_000 * 5_000)) < 1e-9, String(y));
});

test("there is no figure beyond the measured points", () => {
  for (const shape of ["linear", "logarithmic", "steps"]) {
    for (const x of [0, 0.5, 1_001, -1, NaN, Infinity]) assert.equal(interpolate(POINTS, x, shape), null, String(x));
    assert.equal(interpolate([], 1, shape), null);
    assert.equal(interpolate([POINTS[0]], 2, shape), null);
  }
});

test("a cost of zero is not raised to a power", () => {
  const { y } = interpolate([{ x: 1, y: 0 }, { x: 101, y: 10 }], 51, "logarithmic");
  assert.equal(y, 5);
});

test("the range of points on one line is that line", () => {
  const points = [1, 10, 50, 1_000].map((x) => ({ x, y: 7 * x }));
  for (const shape of ["linear", "logarithmic"]) {
    const { y, low, high } = interpolate(points, 30, shape);
    for (const value of [y, low, high]) assert.ok(Math.abs(value - 210) < 1e-9, `${shape}: ${value}`);
  }
});

test("where something begins, the value may be that of either point", () => {
  // 26 pages, or 1 827 if the whole cache is read.
  const points = [{ x: 1, y: 26 }, { x: 10, y: 26 }, { x: 50, y: 1_827 }, { x: 100, y: 1_829 }];
  assert.deepEqual(interpolate(points, 14, "steps"), { y: 26, low: 26, high: 1_827, from: 10, to: 50 }, "nearer to 10");
  assert.equal(interpolate(points, 40, "steps").y, 1_827);
  const { low, high } = interpolate(points, 14, "linear");
  assert.deepEqual([low, high], [26, 1_827]);
  // Steeper than before and after, but not faster than the size.
  const bent = [{ x: 1, y: 100 }, { x: 10, y: 110 }, { x: 20, y: 200 }, { x: 100, y: 280 }];
  const { low: least, high: most } = interpolate(bent, 15, "linear");
  assert.ok(least <= 110 && most >= 200, `${least} to ${most}`);
});

test("the range is extended by what surrounding points are missed by", () => {
  const straight = [{ x: 1, y: 1 }, { x: 2, y: 2 }, { x: 4, y: 4 }, { x: 8, y: 8 }];
  const dented = [{ x: 1, y: 1 }, { x: 2, y: 1 }, { x: 4, y: 4 }, { x: 8, y: 8 }];
  assert.equal(interpolate(straight, 6, "logarithmic").low, interpolate(straight, 6, "logarithmic").y);
  assert.ok(interpolate(dented, 3, "linear").low <= 1, "2 is missed by half");
});

test("measured inserts are returned unchanged", () => {
  for (const of of USERS.results.cases) {
    const found = of.outcome.measured;
    const match = /^(middle|end) ([\d ]+)$/.exec(of.name);
    if (of.section !== "insert" || !match || !found) continue;
    const column = ALL.columns.find((one) => one.key === of.configuration);
    const estimated = estimate(ALL, column, { ...AT, place: match[1], n: Number(match[2].replace(/ /g, "")) });
    assert.equal(estimated.kind, "measured");
    assert.equal(estimated.cost.instructions, found.instructions);
    assert.equal(estimated.cost.message.cycles, found.detail.cost.cycles);
    const { inside } = found.detail.cost;
    assert.equal(estimated.cost.message.charge, inside.charge);
    assert.equal(estimated.cost.charge, found.instructions + inside.charge - inside.instructions, "without what is around the work");
  }
});

test("points of curve and payload count as measured", () => {
  assert.equal(estimate(ALL, btree, { ...AT, rows: 10_000 }).kind, "measured");
  assert.equal(estimate(ALL, btree, { ...AT, payload: 1_000, rows: 100_000 }).kind, "measured");
});

test("a figure between sizes lies between its neighbours and names them", () => {
  const cost = (n) => estimate(ALL, btree, { ...AT, n }).cost;
  const estimated = estimate(ALL, btree, { ...AT, n: 300 });
  assert.equal(estimated.kind, "interpolated");
  assert.match(estimated.how, /between 100 and 1\u202f000 rows per message/);
  for (const value of ["instructions", "charge", "cycles"]) {
    assert.ok(estimated.cost[value] > cost(100)[value] && estimated.cost[value] < cost(1_000)[value], value);
  }
  assert.match(errorText(estimated), /^[\d.]+\u00a0M to [\d.]+\u00a0M instructions: wrong by up to \d+\u00a0%$/);
});

test("the error is small where costs are straight, and large where they jump", () => {
  const engines = ALL.columns.filter((column) => !["append", "array"].includes(column.key));
  const worst = (place, n) => Math.max(...engines.map((column) => estimate(ALL, column, { ...AT, place, n }).error));
  assert.ok(worst("end", 700) < 0.25, "costs are nearly straight there");
  assert.ok(worst("middle", 20) > 1, "and jump there: a commit begins to go through the page cache");
});

test("the same message in tables of other sizes is interpolated", () => {
  const estimated = estimate(ALL, btree, { ...AT, rows: 30_000 });
  assert.equal(estimated.kind, "interpolated");
  assert.match(estimated.how, /between 10\u202f000 and 100\u202f000 rows in the table/);
});

test("other sizes are estimated from the sizes around them", () => {
  const estimated = estimate(ALL, btree, { ...AT, n: 1_000, payload: 300, rows: 30_000 });
  assert.equal(estimated.kind, "estimated");
  assert.equal(estimated.how, "1\u202f000 rows per message, between 100 and 1\u202f000 bytes per row, between 10\u202f000 and 100\u202f000 rows in the table");
  assert.ok(estimated.low < estimated.cost.instructions && estimated.cost.instructions < estimated.high);
});

test("a small message does not take the scan of a large one", () => {
  // 100 rows go through the whole cache of SQLite, in proportion to the table; 1 row does not.
  const persist = ALL.columns.find((column) => column.key === "sqlite/persist");
  const small = estimate(ALL, persist, { ...AT, n: 1, rows: 100_000 }).cost.instructions;
  const measured = estimate(ALL, persist, { ...AT, n: 1 }).cost.instructions;
  assert.ok(small > measured * 0.7, `${small} of ${measured}: the fixed part hardly depends on the table`);
});

for (const suite of ["users", "users-2025-10"]) {
  test(`${suite}: points that are left out are within the stated range`, () => {
    const all = points(committed(suite));
    const found = all.columns.flatMap((column) => all.places.flatMap((place) => Object.values(leaveOneOut(all, column, place))));
    const left = found.reduce((sum, of) => sum + of.errors.length, 0);
    const within = found.reduce((sum, of) => sum + of.within, 0);
    assert.ok(left > 200, `${left} points`);
    // The neighbours are further apart than in use.
    assert.ok(within / left > 0.93, `${within} of ${left}`);
  });
}

/** Measured messages beside their estimates. */
const compared = (measured) => measured.flatMap(({ at, instructions }) => Object.entries(instructions).map(([key, real]) => {
  const estimated = estimate(ALL, ALL.columns.find((column) => column.key === key), at);
  return { key, at, real, estimated, within: estimated.low <= real && real <= estimated.high };
}));
const checked = compared(MEASURED);

/**
 * A row at the end costs SQLite MEMORY 41 pages of the heap in the reference run, and 23 in a table of 200 000 rows, as the
 * heap happens to be laid out: estimates between that run and these sizes are too high.
 * @param {{key: string, at: {n: number, place: string}}} of
 */
const isHigh = ({ key, at }) => key === "sqlite/memory" && at.place === "end" && at.n < 10;

test("5 rows of 300 bytes in 200 000 cost what the page says", () => {
  const example = checked.filter(({ at }) => at.n === 5 && at.payload === 300);
  assert.equal(example.length, 16);
  assert.deepEqual(example.filter((of) => !of.within).map(({ key, at }) => `${key} ${at.place}`), ["sqlite/memory end"]);
  for (const { key, at, real, estimated } of example.filter((of) => !isHigh(of))) {
    const floor = key === "append" || key === "array";
    assert.ok(floor || Math.abs(estimated.cost.instructions / real - 1) < 0.3, `${key} ${at.place}: ${estimated.cost.instructions} for ${real}`);
  }
});

test("measured sizes are within the stated range, or the page asks to measure", () => {
  const outside = checked.filter((of) => !of.within);
  assert.ok(checked.length > 100 && outside.length / checked.length < 0.02, outside.map(({ key, at }) => `${key} ${JSON.stringify(at)}`).join());
  const trusted = checked.filter((of) => !uncertain(of.estimated));
  assert.ok(trusted.length > 5, `${trusted.length} are exact enough`);
  for (const { key, at, real, estimated } of trusted) {
    assert.ok(Math.abs(estimated.cost.instructions / real - 1) < 0.25, `${key} ${JSON.stringify(at)}`);
  }
});

test("sizes that no estimate was adapted to are within the stated range", () => {
  const later = compared(MEASURED_LATER);
  assert.equal(later.length, 80);
  const high = later.filter(isHigh);
  assert.ok(high.length > 0 && high.every(({ estimated, real }) => estimated.high > real), "estimates are too high, if at all");
  assert.deepEqual(later.filter((of) => !of.within && !isHigh(of)).map(({ key, at }) => `${key} ${JSON.stringify(at)}`), []);
});

test("new rows at random are taken from every section that has them", () => {
  assert.deepEqual(ALL.places, ["middle", "end", "random"]);
  const at = { ...AT, place: "random" };
  assert.equal(estimate(ALL, btree, { ...at, n: 1 }).kind, "measured", "insert 1 uniform, warm");
  assert.equal(estimate(ALL, btree, { ...at, n: 1_000 }).kind, "measured", "insert 1 000 uniform, warm");
  assert.equal(estimate(ALL, btree, { ...at, rows: 10_000 }).kind, "measured", "100 of 10 000 rows: insert uniform");
  assert.equal(estimate(ALL, btree, { ...at, n: 300 }).kind, "interpolated");
  assert.match(estimate(ALL, btree, { ...at, payload: 300 }).how, /^measured with 100 bytes per row only$/);
});

test("a case measured by several sections has one value", () => {
  for (const column of ALL.columns) {
    const seen = new Map();
    for (const { n, rows, payload, place, parts } of column.points) {
      const key = [n, rows, payload, place].join();
      assert.deepEqual(seen.get(key) ?? parts, parts, `${column.key}: ${key}`);
      seen.set(key, parts);
    }
  }
});

test("beyond the measured range there is no figure, but the range is named", () => {
  for (const [asked, expected] of [
    [{ n: 20_000 }, /20\u202f000 rows per message is outside .* 1 to 10\u202f000/],
    [{ rows: 10 }, /10 rows in the table is outside .* 1\u202f000 to 1\u202f000\u202f000/],
    [{ payload: 1 }, /1 bytes per row is outside .* 10 to 100\u202f000/],
    [{ place: "nowhere" }, /not measured at this place/],
  ]) {
    const estimated = estimate(ALL, btree, { ...AT, ...asked });
    assert.equal(estimated.kind, "none");
    assert.equal(estimated.cost, null);
    assert.match(estimated.how, expected);
  }
});

test("a single section fixes the other sizes", () => {
  const alone = report({ ...USERS.results, cases: USERS.results.cases.filter((of) => of.section === "insert") });
  const all = points(alone);
  const column = all.columns.find((one) => one.key === "btree");
  assert.equal(estimate(all, column, { ...AT, n: 20 }).kind, "interpolated");
  assert.match(estimate(all, column, { ...AT, rows: 10_000 }).how, /measured with 1\u202f000\u202f000 rows in the table only/);
  assert.match(estimate(all, column, { ...AT, payload: 10 }).how, /measured with 100 bytes per row only/);
});

test("without details, instructions determine the rank", () => {
  const cases = USERS.results.cases
    .filter((of) => of.section === "insert")
    .map((of) => ({ ...of, outcome: { measured: { ...of.outcome.measured, detail: null } } }));
  const bare = report({ ...USERS.results, cases });
  const { rows, by } = ranked(bare, points(bare), { ...AT, nodes: 13, usd: 1, by: "cycles" }, 13);
  assert.equal(by, "instructions");
  assert.ok(rows.every((row) => row.instructions > 0 && Number.isNaN(row.cycles)));
});

test("engines are ranked by the requested cost, floors are not ranked", () => {
  for (const by of ["cycles", "message", "instructions"]) {
    const { rows } = ranked(USERS, ALL, { ...AT, nodes: 13, usd: 1.36, by }, 13);
    const own = rows.filter((row) => row.rank);
    assert.deepEqual(own.map((row) => row.rank), own.map((_, at) => at + 1));
    const key = by === "message" ? "cycles" : by;
    assert.ok(own.every((row, at) => at === 0 || own[at - 1][key] <= row[key]));
    assert.ok(rows.filter((row) => row.floor).every((row) => row.rank === null));
  }
});

test("the answer names a library as advised and as shipped, or else the most expensive", () => {
  const row = (rank, key, insteadOf = null) => ({ rank, key, heading: key.toUpperCase(), insteadOf });
  const names = (...rows) => besides(rows).map((of) => of.name);
  const floor = row(null, "array");
  assert.deepEqual(names(row(1, "a"), row(2, "b"), row(3, "c"), floor), ["B", "C"]);
  assert.deepEqual(names(row(1, "a"), row(2, "b"), floor), ["B"]);
  assert.deepEqual(names(row(1, "a"), row(2, "b"), row(3, "small", "s"), row(4, "s"), row(5, "c")), ["B", "SMALL", "S, as it is shipped,"]);
  assert.deepEqual(names(row(1, "small", "s"), row(2, "s"), row(3, "c")), ["S, as it is shipped,"]);
  assert.deepEqual(names(row(1, "a"), row(2, "small", "s"), row(3, "c")), ["SMALL", "C"]);
  assert.deepEqual(names(row(1, "a")), []);
});

test("cycles are proportional to the nodes, dollars to the rate", () => {
  const at = (nodes, usd) => ranked(USERS, ALL, { ...AT, nodes, usd, by: "cycles" }, 13).rows[0];
  assert.equal(at(26, 1).cycles, 2 * at(13, 1).cycles);
  assert.equal(at(13, 3).usd, 3 * at(13, 1).usd);
});

test("work beyond the limit of a message is not ranked", () => {
  const { rows } = ranked(USERS, ALL, { ...AT, n: 10_000, payload: 100_000, rows: 1_000_000, nodes: 13, usd: 1, by: "cycles" }, 13);
  const heavy = rows.filter((row) => row.charge > ALL.limit);
  assert.ok(heavy.length > 0 && heavy.every((row) => !row.fits && row.rank === null));
});

test("operations of one kind are recognised by the names of cases", () => {
  for (const [section, name, expected] of [
    ["work", "read 1 000 uniform, warm", { operation: "read", place: "random", n: 1_000 }],
    ["work", "update 1 uniform, warm", { operation: "update", place: "random", n: 1 }],
    ["work", "100 ranges of 100 uniform, warm", { operation: "scan", place: "random", n: 100 }],
    ["work", "1 range of 100 uniform, warm", { operation: "scan", place: "random", n: 1 }],
    ["base", "10: read middle", { operation: "read", place: "middle", n: 10 }],
    ["locality", "middle: update 100", { operation: "update", place: "middle", n: 100 }],
    ["curve", "100 of 1 000 rows: read uniform", { operation: "read", place: "random", n: 100 }],
    ["payload", "10 bytes, 100 rows of 1 000 000: update uniform", { operation: "update", place: "random", n: 100 }],
    ["insert", "end 50", { operation: "insert", place: "end", n: 50 }],
  ]) assert.deepEqual({ ...names.operation(section, name) }, expected, name);
  for (const [section, name] of [
    ["work", "read missing 1 000 uniform, warm"], ["work", "overwrite 1 uniform, warm"], ["work", "read 1 000 Zipf, warm"], ["work", "scan, warm"],
    ["work", "read 1 uniform, upgraded"], ["locality", "uniform, sorted: read 100"], ["working-set", "100 rows: read 1 000"],
  ]) assert.equal(names.operation(section, name), null, name);
});

test("a measured message is returned unchanged", () => {
  for (const operation of OPERATIONS) {
    const all = engine("btree").measured.filter((of) => of.operation === operation);
    assert.ok(all.length > 1, operation);
    for (const { n, rows, payload, place, parts } of all) {
      const found = cost({ [operation]: n, rows, payload, place });
      assert.equal(found.kind, "measured", `${operation} ${n}`);
      assert.equal(found.cost.instructions, parts.compute + parts.touched + parts.stable);
      assert.equal(found.error, null);
    }
  }
});

test("a further operation costs something, and less than in a message of its own", () => {
  for (const place of ["random", "middle"]) {
    for (const key of ["btree", "sqlite/persist,cache_size=1000", "sqlite/wal", "sqlite-vfs"]) {
      const of = (mix) => cost({ place, ...mix }, key).cost.instructions;
      const [one, other, both] = [of({ insert: 1 }), of({ read: 10 }), of({ insert: 1, read: 10 })];
      assert.ok(both > Math.max(one, other) && both < one + other, `${key} ${place}: ${one} and ${other} give ${both}`);
    }
  }
});

test("the same pages are paid once where operations work on the same rows", () => {
  const pages = (mix) => { const { instructions } = cost(mix).cost; return instructions; };
  const far = pages({ insert: 1, read: 10 }) - pages({ insert: 1, read: 1 });
  const near = pages({ insert: 1, read: 10, place: "middle" }) - pages({ insert: 1, read: 1, place: "middle" });
  assert.ok(near < far / 3, `${near} in the middle, ${far} at random`);
});

test("what was not measured has no figure, but a reason", () => {
  for (const [mix, expected] of [
    [{}, /^the message does nothing$/],
    [{ insert: 5, indexes: 1 }, /^secondary indexes are not in these measurements$/],
    [{ insert: 5, read: 2_000 }, /^reads: 2\u202f000 reads per message is outside of the measured range: 1 to 1\u202f000$/],
    [{ insert: 5, read: 5, rows: 10 }, /10 rows in the table is outside of the measured range/],
    [{ insert: 5, delete: 2, place: "middle" }, /^deletions: measured with 1 deletions per message only$/],
  ]) {
    const found = cost(mix);
    assert.equal(found.kind, "none");
    assert.equal(found.cost, null);
    assert.match(found.how, expected);
  }
});

const comparedMixes = (mixes) => mixes.flatMap(({ mix, instructions }) => Object.entries(instructions).map(([key, real]) => {
  const found = cost(mix, key);
  return { key, mix, real, found, within: found.low <= real && real <= found.high };
}));

test("measured mixes are estimated, and nine of ten are within the stated range", () => {
  const all = comparedMixes(MIXES);
  assert.equal(all.length, 19 * 7);
  assert.ok(all.every(({ found }) => found.kind === "estimated"));
  assert.ok(all.filter((of) => of.within).length / all.length > 0.9);
  const errors = all.map(({ real, found }) => Math.abs(found.cost.instructions / real - 1)).sort((one, other) => one - other);
  assert.ok(errors[errors.length >> 1] < 0.15 && errors.at(-1) < 0.5, `${errors[errors.length >> 1]}, ${errors.at(-1)}`);
  // Where the page is wrong, it asks to measure.
  for (const { key, mix, found } of all.filter((of) => !of.within)) assert.ok(uncertain(found), `${key} ${JSON.stringify(mix)}`);
});

test("mixes that no estimate was adapted to are within the stated range", () => {
  const all = comparedMixes(MIXES_LATER);
  assert.ok(all.filter((of) => of.within).length / all.length > 0.9, all.filter((of) => !of.within).map(({ key, mix }) => `${key} ${JSON.stringify(mix)}`).join("; "));
});

for (const [name, least] of [["users", 0.9], ["users-2025-10", 0.75]]) {
  test(`${name}: operations that are left out are within the stated range`, () => {
    const all = measurements(committed(name));
    const found = all.engines.flatMap((of) => Object.values(leaveOut(all, of)));
    const sum = (value) => found.reduce((total, of) => total + value(of), 0);
    const left = sum((of) => of.errors.length);
    assert.ok(left >= 100, `${left} points`);
    // The neighbours are further apart than in use.
    assert.ok(sum((of) => of.within) / left > least, `${sum((of) => of.within)} of ${left}`);
  });
}

test("a file of the suite mix answers with what it measured", () => {
  const [source, ...more] = sources([MIX]);
  assert.equal(more.length, 0);
  assert.deepEqual(source.mix, { insert: 5, read: 20, update: 0, delete: 0, scan: 0, indexes: 2, rows: 200_000, payload: 300, place: "random" });
  const { rows } = ranked(MIX, source, { ...source.mix, nodes: 13, usd: 1.36, by: "instructions" }, 13, source.cost);
  const map = rows.find((row) => row.key === "btree");
  const of = MIX.results.cases.find((one) => one.configuration === "btree").outcome.measured;
  assert.equal(map.instructions, of.instructions / 20);
  assert.equal(map.estimate.kind, "measured");
  assert.equal(rows[0].key, "sqlite/wal,cache_size=1000");
  const other = source.cost(source.columns[0], { ...source.mix, read: 19, indexes: 0 });
  assert.equal(other.kind, "none");
  assert.match(other.how, /one mix only, with other reads, indexes$/);
});

test("an exact measurement goes before estimates", () => {
  const all = sources([USERS, MIX]);
  assert.equal(sourceOf(all, all[1].mix).report, MIX);
  assert.equal(sourceOf(all, { ...all[1].mix, indexes: 0 }).report, USERS);
  assert.equal(sourceOf(sources([MIX]), { ...all[1].mix, indexes: 0 }).report, MIX, "for want of another");
});

test("the names of mixes are those of the suite", () => {
  assert.deepEqual(names.mix("5 inserts, 20 reads, at random"), { insert: 5, read: 20, place: "random" });
  assert.deepEqual(names.mix("1 000 updates, 1 scan, in the middle"), { update: 1_000, scan: 1, place: "middle" });
  for (const other of ["", "at random", "5 apples, at random", "5 inserts", "5 inserts, nowhere"]) assert.equal(names.mix(other), null, other);
});

test("settings are PRAGMAs to paste, those of the file first", () => {
  assert.deepEqual(pragmas({ cache_size: "1000", journal_mode: "wal" }), ["PRAGMA journal_mode = WAL;", "PRAGMA cache_size = 1000;"]);
  assert.deepEqual(pragmas({ journal_mode: "persist", cache_size: "-32768", page_size: "16384" })[0], "PRAGMA page_size = 16384;");
  assert.deepEqual(pragmas({}), []);
  assert.deepEqual(pragmas({ "x; DROP": "1", cache_size: "1; DROP" }), []);
});

test("a journal that is off undoes nothing", () => {
  assert.equal(undoes({ journal_mode: "off" }), false);
  for (const settings of [null, {}, { journal_mode: "memory" }]) assert.equal(undoes(settings), true);
});

const [SOURCE] = sources([USERS]);
const BILLED = {
  perDay: 1_000, insert: 100, read: 0, update: 0, delete: 0, scan: 0, indexes: 0, payload: 100, rows: 1_000_000, place: "middle", gib: null, nodes: 13, usd: 1.36, by: "cycles",
};
const bills = (asked) => billed(SOURCE, { ...BILLED, ...asked }, 13);
const ofMap = (asked) => bills(asked).find((row) => row.key === "btree");

/** The example in `docs/report.md`. */
test("a month consists of instructions, messages, storage and the base fee", () => {
  const use = { perDay: 1_000, instructions: 7_093_476, bytes: 10_139, gib: 0.268 };
  const found = month(FEES, use, 1);
  const rounded = Object.fromEntries(Object.entries(found).map(([part, cycles]) => [part, Math.round(cycles)]));
  assert.deepEqual(rounded, {
    instructions: 212_804_280_000,
    messages: 794_340_000_000,
    storage: 220_553_280_000,
    base: 25_920_000_000,
    total: 1_253_617_560_000,
  });
  const old = month({ ...FEES, storage_gib_second: 127_000, canister_second: 0 }, use, 1);
  assert.equal(old.base, 0);
  assert.ok(Math.abs(old.storage / found.storage - 127_000 / 317_500) < 1e-12);
  assert.ok(Math.abs(month(FEES, use, 2).total / found.total - 2) < 1e-12, "prices follow the nodes");
});

test("storage is that of the measured fixture", () => {
  const fixture = USERS.results.fixtures.find((of) => of.configuration === "btree" && of.rows === 1_000_000 && of.payload === 100);
  const { heap_pages, stable_pages } = fixture.outcome.measured;
  const gib = ((heap_pages + stable_pages) * 65_536) / 2 ** 30;
  assert.deepEqual(memory(USERS, "btree", { rows: 1_000_000, payload: 100 }), { gib, rows: 1_000_000, payload: 100, exact: true });
  const more = memory(USERS, "btree", { rows: 3_000_000, payload: 100 });
  assert.equal(more.exact, false);
  assert.ok(Math.abs(more.gib / gib - 3) < 1e-12, "in proportion to the rows");
  assert.equal(memory(USERS, "btree", { rows: 1_000, payload: 90_000 }).payload, 100_000, "rows nearest in length come first");
  assert.equal(memory(USERS, "nothing", { rows: 1, payload: 1 }), null);
});

test("the bill uses measured instructions and storage, and the bytes of the rows", () => {
  const row = ofMap();
  const of = USERS.results.cases.find((one) => one.section === "insert" && one.name === "middle 100" && one.configuration === "btree");
  assert.equal(row.instructions, of.outcome.measured.instructions, "the counter includes the whole charge");
  assert.equal(row.month.instructions, 30_000 * row.instructions);
  const bytes = envelope(row.estimate.cost, FEES);
  assert.equal(bytes, 139);
  assert.equal(row.month.messages, 30_000 * (6_200_000 + 2_000 * (10_000 + bytes)));
  assert.ok(Math.abs(row.usd - (row.month.total / 1e12) * 1.36) < 1e-9);
  const whole = ofMap({ by: "message" });
  assert.equal(whole.instructions, of.outcome.measured.detail.cost.inside.charge);
});

test("engines are ranked by cost, floors are not ranked", () => {
  const rows = bills();
  const ranks = rows.filter((row) => !row.floor);
  assert.deepEqual(ranks.map((row) => row.rank), ranks.map((_, at) => at + 1));
  assert.ok(ranks.every((row, at) => at === 0 || ranks[at - 1].usd <= row.usd));
  assert.ok(rows.slice(ranks.length).every((row) => row.floor && row.rank === null && row.usd > 0));
});

test("storage entered by the reader applies to every engine", () => {
  const rows = bills({ gib: 2 });
  assert.ok(rows.every((row) => row.gib === 2 && row.memory === null));
  assert.equal(ofMap({ gib: 0 }).month.storage, 0);
});

test("beyond the measured rows, instructions are constant and storage grows", () => {
  const [one, more] = [ofMap(), ofMap({ rows: 5_000_000 })];
  assert.equal(more.clamped, 1_000_000);
  assert.equal(more.instructions, one.instructions);
  assert.ok(Math.abs(more.month.storage / one.month.storage - 5) < 1e-9);
});

test("without a figure there is no bill", () => {
  assert.ok(bills({ insert: 1_000_000 }).every((row) => row.month === null && Number.isNaN(row.usd) && row.rank === null));
  const heavy = bills({ insert: 10_000, payload: 100_000 }).filter((row) => !row.fits);
  assert.ok(heavy.length > 0 && heavy.every((row) => row.month === null));
});

test("without details, the bill covers the work and the bytes of the rows", () => {
  const cases = USERS.results.cases.filter((of) => of.section === "insert")
    .map((of) => ({ ...of, outcome: { measured: { ...of.outcome.measured, detail: null } } }));
  const bare = report({ ...USERS.results, cases });
  const [row] = billed(sources([bare])[0], BILLED, 13);
  assert.equal(row.instructions, row.estimate.cost.instructions);
  assert.equal(row.month.messages, 30_000 * (6_200_000 + 2_000 * 10_000));
});

test("reads are in the bill, and only rows that are written are sent", () => {
  const [one, more, changed] = [ofMap({ insert: 1 }), ofMap({ insert: 1, read: 20 }), ofMap({ insert: 1, read: 20, update: 2 })];
  assert.ok(more.month.instructions > one.month.instructions);
  assert.equal(more.month.messages, one.month.messages);
  assert.ok(Math.abs(changed.month.messages - more.month.messages - 30_000 * 2_000 * 200) < 1);
});
