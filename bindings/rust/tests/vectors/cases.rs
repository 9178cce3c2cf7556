//! Reader of bindings/vectors.txt, and the arrays of one run of a case.

use crate::common::{context, integers};
use mpcore::*;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::rc::Rc;

/// An array: its elements before the case, and after it with the bound of their error.
pub struct Given {
    pub name: String,
    pub dtype: String,
    pub shape: Vec<usize>,
    numbers: Vec<f64>,
    wanted: Option<(Vec<f64>, f64)>,
}

/// A case with the options and arrays of all its calls.
pub struct Case {
    pub title: String,
    options: HashMap<String, String>,
    pub arrays: Vec<Given>,
}

fn numbers(text: &str, count: usize) -> Vec<f64> {
    if let Some(seed) = text.strip_prefix("seed:") {
        let (seed, divisor) = seed.split_once('/').unwrap_or((seed, "1"));
        let (seed, divisor) = (seed.parse().unwrap(), divisor.parse::<f64>().unwrap());
        return integers(count, seed).into_iter().map(|v| f64::from(v) / divisor).collect();
    }
    let given: Vec<f64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
    (0..count).map(|i| given[i % given.len()]).collect()
}

fn array(line: &str) -> Given {
    let (line, after, bound) = match (line.split_once(" > "), line.split_once(" ~ ")) {
        (Some((line, after)), _) => (line, Some(after), 0.0),
        (_, Some((line, after))) => (line, Some(after), 6e-6),
        _ => (line, None, 0.0),
    };
    let (declared, before) = line.split_once(" =").unwrap_or((line, "0"));
    let words: Vec<&str> = declared.split_whitespace().collect();
    let shape: Vec<usize> = words[2].split('x').map(|extent| extent.parse().unwrap()).collect();
    let count = shape.iter().product();
    Given {
        name: words[0].into(),
        dtype: words[1].into(),
        shape,
        numbers: numbers(before.trim(), count),
        wanted: after.map(|text| (numbers(text, count), bound)),
    }
}

/// Returns all cases of a file.
pub fn cases(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for line in text.replace("\n      ", " ").lines() {
        let line = line.split(" #").next().unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        if line.starts_with('#') {
            continue;
        }
        if !line.starts_with(' ') {
            cases.push(Case { title: line.into(), options: HashMap::new(), arrays: Vec::new() });
        }
        let case = cases.last_mut().unwrap();
        if line.starts_with("  ") && !words[0].starts_with('.') {
            case.arrays.push(array(line));
        } else {
            let options = words.iter().filter_map(|word| word.split_once('='));
            case.options.extend(options.map(|(name, value)| (name.into(), value.into())));
        }
    }
    cases
}

/// Types of arrays.
pub trait Number: Plain {
    fn new(value: f64) -> Self;
    fn value(self) -> f64;
}

macro_rules! numbers {
    ($($kind:ty: $new:expr, $value:expr;)*) => { $(
        impl Number for $kind {
            fn new(value: f64) -> Self {
                $new(value)
            }
            fn value(self) -> f64 {
                $value(self)
            }
        }
    )* };
}
numbers! {
    f32: |v| v as f32, f64::from;
    F16: |v| F16::from_f32(v as f32), |v: F16| v.to_f32().into();
    i32: |v| v as i32, f64::from;
    i64: |v| v as i64, |v| v as f64;
    u8: |v| v as u8, f64::from;
}

/// An array on the device.
pub struct Arg<T: Plain>(Rc<DeviceBuffer<T>>);

impl<T: Plain> Data for Arg<T> {
    type Element = T;
    fn view(&self) -> View<'_, T> {
        self.0.view()
    }
}

pub fn view<T: Plain>(arg: &Option<Arg<T>>) -> Option<View<'_, T>> {
    arg.as_ref().map(Data::view)
}

/// Statistics of gradients.
pub struct Stats(Option<Arg<f32>>, Option<Arg<f32>>);

impl Stats {
    pub fn view(&self) -> GradStats<'_> {
        GradStats { found_inf: view(&self.0), amax: view(&self.1) }
    }
}

/// An error that a run introduces: an array is an element too short, or of another context.
#[derive(Clone, Copy, PartialEq)]
pub enum Fault {
    Short,
    Foreign,
}

type Reader = Box<dyn Fn() -> Vec<f64>>;

/// One run of a case: uploads the arrays that the call requires, and keeps them for the comparison.
pub struct Run<'c> {
    pub context: Context,
    case: &'c Case,
    fault: Option<(&'c str, Fault)>,
    arrays: RefCell<HashMap<String, Reader>>,
    options: RefCell<HashSet<String>>,
}

impl<'c> Run<'c> {
    pub fn new(context: &Context, case: &'c Case, fault: Option<(&'c str, Fault)>) -> Self {
        let (arrays, options) = Default::default();
        Run { context: context.clone(), case, fault, arrays, options }
    }

    fn given(&self, name: &str) -> &'c Given {
        let found = self.case.arrays.iter().find(|given| given.name == name);
        found.unwrap_or_else(|| panic!("{}: no {name}", self.case.title))
    }

    pub fn has(&self, name: &str) -> bool {
        self.case.arrays.iter().any(|given| given.name == name)
    }

    pub fn shape(&self, name: &str) -> &'c [usize] {
        &self.given(name).shape
    }

    /// Returns the extents of an array with its leading dimensions merged.
    pub fn rows<const N: usize>(&self, name: &str) -> [usize; N] {
        let (outer, inner) = self.shape(name).split_at(self.shape(name).len() + 1 - N);
        let mut rows = [outer.iter().product(); N];
        rows[1..].copy_from_slice(inner);
        rows
    }

    pub fn dtype(&self, name: &str) -> &'c str {
        &self.given(name).dtype
    }

    pub fn get<T: Number>(&self, name: &str) -> Arg<T> {
        let mut numbers: Vec<T> = self.given(name).numbers.iter().map(|&v| T::new(v)).collect();
        let fault = self.fault.filter(|fault| fault.0 == name).map(|fault| fault.1);
        if fault == Some(Fault::Short) {
            numbers.pop();
        }
        let owner = if fault == Some(Fault::Foreign) { context() } else { self.context.clone() };
        let buffer = Rc::new(owner.upload(&numbers).unwrap());
        self.keep(name, buffer.clone());
        Arg(buffer)
    }

    fn keep<T: Number>(&self, name: &str, buffer: Rc<DeviceBuffer<T>>) {
        let read = move || buffer.to_vec().unwrap().into_iter().map(T::value).collect();
        self.arrays.borrow_mut().insert(name.into(), Box::new(read));
    }

    pub fn opt<T: Number>(&self, name: &str) -> Option<Arg<T>> {
        self.has(name).then(|| self.get(name))
    }

    pub fn stats(&self) -> Stats {
        Stats(self.opt("found_inf"), self.opt("amax"))
    }

    /// Adds an array that an object owns.
    pub fn own(&self, name: &str, buffer: &DeviceBuffer<f32>) {
        if self.has(name) {
            let copy = self.context.upload(&buffer.to_vec().unwrap()).unwrap();
            self.keep(name, Rc::new(copy));
        }
    }

    pub fn option(&self, name: &str) -> Option<&'c str> {
        self.options.borrow_mut().insert(name.into());
        self.case.options.get(name).map(String::as_str).filter(|&value| value != "none")
    }

    /// Returns whether an option has this value.
    pub fn equals(&self, name: &str, value: &str) -> bool {
        self.options.borrow_mut().insert(name.into());
        self.case.options.get(name).map_or(false, |text| text == value)
    }

    pub fn is_set(&self, name: &str) -> bool {
        self.option(name).is_some()
    }

    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.option(name).map(|text| text.parse().ok().unwrap())
    }

    pub fn extents<T: std::str::FromStr + Debug, const N: usize>(
        &self, name: &str,
    ) -> Option<[T; N]> {
        let list = |text: &str| text.split(',').map(|word| word.parse().ok().unwrap()).collect();
        self.option(name).map(list).map(|list: Vec<T>| list.try_into().unwrap())
    }

    /// Returns the enumerator with the name of an option.
    pub fn named<E: Debug>(&self, name: &str, from_raw: fn(u32) -> Option<E>) -> Option<E> {
        let text = self.option(name)?.replace('_', "");
        (0..64).filter_map(from_raw).find(|value| format!("{value:?}").to_lowercase() == text)
    }

    /// Compares all arrays with their contents after the case.
    pub fn check(&self) {
        let title = &self.case.title;
        for name in self.case.options.keys().filter(|name| !name.starts_with("dtype")) {
            assert!(self.options.borrow().contains(name), "{title}: {name} is not passed");
        }
        for given in &self.case.arrays {
            let arrays = self.arrays.borrow();
            let read = arrays.get(&given.name);
            let got = read.unwrap_or_else(|| panic!("{title}: {} is not passed", given.name))();
            let (wanted, bound) =
                given.wanted.as_ref().map_or((&given.numbers, 1e-7), |w| (&w.0, w.1));
            let near = |a: f64, b: f64| {
                a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= bound * b.abs().max(1.0)
            };
            let equal =
                got.len() == wanted.len() && got.iter().zip(wanted).all(|(&a, &b)| near(a, b));
            assert!(equal, "{title}: {}: {got:?}, not {wanted:?}", given.name);
        }
    }
}
